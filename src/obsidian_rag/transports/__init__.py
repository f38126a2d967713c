"""The doors: command line, HTTP and MCP. They translate requests to tools and hold no rules."""
