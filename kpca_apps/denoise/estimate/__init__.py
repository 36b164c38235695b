"""How strong the noise of an image is, how sure that is, and by what law it grows with light."""
