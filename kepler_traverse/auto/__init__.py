"""How ``strategy="auto"`` chooses: survey of the graph, fitted cost model, calibration of the
machine, and choice.
"""
