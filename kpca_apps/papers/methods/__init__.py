"""Methods of the papers; ``kpca papers run methods`` compares each with the one to prefer."""
