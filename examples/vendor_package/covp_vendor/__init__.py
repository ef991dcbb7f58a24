"""What a vendor brings for covp."""
