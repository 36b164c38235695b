"""Methods of the papers; ``kpca papers run methods`` has each beside what to prefer."""
