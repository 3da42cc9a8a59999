"""Who may depend on what: cli -> mcp -> {launcher, jsonrpc} -> policy, and nothing the other way."""

def api_visibility(layer):
    """The visibility of what users depend on: everyone outside Bulkhead, and the layers above it within.

    A visibility list can't say "everyone but", so that it is decided by who builds: in Bulkhead's own build the layers above
    are named, and when Bulkhead is another build's dependency its libraries are public.

    Args:
      layer: policy, launcher, jsonrpc or mcp.

    Returns:
      a list for the attribute visibility.
    """
    if native.repository_name() == "@":
        return ["//:above_" + layer]
    return ["//visibility:public"]
