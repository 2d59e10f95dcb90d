"""The checks of `asya doctor`: whether an account can hold a mesh, before it is deployed."""
