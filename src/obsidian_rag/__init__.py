"""obsidian-rag makes an Obsidian vault answerable, on the user's own machine."""

import os

__version__ = "0.1.0"

# onnxruntime reports its use to its makers unless it is told not to before it is imported, and
# the model hub's client counts its users. Every process of ours imports this file first.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
