"""Convolutions and fully connected layers."""
