"""What Lambda calls: the function that lists the roles of a deployment."""
