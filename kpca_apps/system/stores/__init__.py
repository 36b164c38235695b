"""Object stores: addresses, what lies there, and folders of results in them."""
