"""Object stores: addresses, objects, and folders of results."""
