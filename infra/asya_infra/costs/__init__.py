"""What a mesh costs by the list prices of AWS: from its templates, and from measured counts of calls."""
