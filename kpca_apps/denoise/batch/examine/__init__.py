"""What is found out about an image of a batch: its noise, comparisons, previews."""
