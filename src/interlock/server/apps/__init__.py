"""The page that a host shows in a chat (MCP Apps): what declares it, and the page itself."""
