"""Methods of the papers; ``kpca papers run methods`` sets each beside the method to prefer."""
