"""Makes ops.safetensors with PyTorch: ops one by one, their values and the gradients of all inputs."""

import sys

import torch
from torch.nn import functional as F

from make import write_safetensors


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


def case(tensors, name, f, **inputs):
    """f(inputs) -> output, or several; dy is random, and every input that can have a gradient gets one."""
    outputs = f(**inputs)
    outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    dys = [torch.randn_like(y) for y in outputs]
    torch.autograd.backward(outputs, dys)
    for i, (y, dy) in enumerate(zip(outputs, dys)):
        tensors |= {f"{name}.y{i}": y, f"{name}.dy{i}": dy}
    for part, x in inputs.items():
        if x.requires_grad:
            tensors |= {f"{name}.{part}": x, f"{name}.d{part}": x.grad}
        else:
            tensors[f"{name}.{part}"] = x.to(torch.int32)


def main():
    torch.manual_seed(7)
    tensors = {}
    case(tensors, "silu", lambda x: F.silu(x), x=leaf(5, 33))
    case(tensors, "clamp", lambda x: torch.clamp(x, -1.0, 0.5), x=leaf(5, 33))  # no element is a limit: there, derivatives are a choice
    case(tensors, "rms_norm", lambda x, gamma: F.rms_norm(x, (33,), gamma, 1e-5), x=leaf(2, 5, 33), gamma=leaf(33))
    case(tensors, "linear_silu", lambda x, w, b: F.silu(F.linear(x, w, b)), x=leaf(5, 7), w=leaf(9, 7), b=leaf(9))
    case(tensors, "patches", lambda x: F.unfold(x, 2, stride=2).transpose(1, 2), x=leaf(2, 3, 4, 6))
    case(tensors, "gather_rows", lambda x, rows: x[rows], x=leaf(6, 2, 3), rows=torch.tensor([[5, 0, 5], [2, 2, 2]]))
    case(tensors, "broadcast_to", lambda x: torch.broadcast_to(x, (2, 3, 4, 5)), x=leaf(3, 1, 5))
    case(tensors, "stack", lambda a, b, c: torch.stack([a, b, c], 1), a=leaf(2, 5), b=leaf(2, 5), c=leaf(2, 5))
    case(tensors, "split", lambda x: torch.split(x, [2, 1, 4], 1), x=leaf(3, 7, 2))
    case(tensors, "min", lambda x: torch.min(x, 1).values, x=leaf(3, 9, 4))
    x = torch.randn(3, 9, 4)
    tensors |= {"argmax.x": x, "argmax.y0": torch.argmax(x, 1).to(torch.int32)}
    case(tensors, "gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), x=leaf(5, 33))
    case(tensors, "gated", lambda x, gate, up: F.silu(F.linear(x, gate)) * F.linear(x, up), x=leaf(4, 7), gate=leaf(9, 7), up=leaf(9, 7))
    write_safetensors(sys.argv[1], tensors, {"made_with": "PyTorch " + torch.__version__.split("+")[0]})


main()
