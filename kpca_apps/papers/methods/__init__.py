"""Methods of the papers; ``kpca papers run methods`` compares each with a better method."""
