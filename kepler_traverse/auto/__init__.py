"""How ``strategy="auto"`` chooses: a survey of the graph, fitted costs, this machine's speeds, and the choice."""
