"""The Transformer for the beam search comparison, in the library transformers: Pegasus is a pre-norm Transformer with tied tables."""

import os
import re

import torch

os.environ["HF_HUB_OFFLINE"] = "1"  # every weight is ours: nothing may be downloaded
from transformers import GenerationConfig, PegasusConfig, PegasusForConditionalGeneration

from beam_model import BOS, EOS, PAD
from transformer import Transformer

NAMES = [(r"^(encoder|decoder)\.(\d+)\.", r"model.\1.layers.\2."), (r"^(encoder|decoder)\.norm\.", r"model.\1.layer_norm.")]
NAMES += [(r"\bself\.", "self_attn."), (r"\bcross\.", "encoder_attn."), (r"\bto_([qkv]|out)\b", r"\1_proj")]
NAMES += [(r"\bself_norm\b", "self_attn_layer_norm"), (r"\bcross_norm\b", "encoder_attn_layer_norm"), (r"\bffn_norm\b", "final_layer_norm")]
NAMES += [(r"\bffn\.first\b", "fc1"), (r"\bffn\.second\b", "fc2"), (r"\bgamma$", "weight"), (r"\bbeta$", "bias")]


def library_name(name):
    for ours, theirs in NAMES:
        name = re.sub(ours, theirs, name)
    return name


def pegasus(model):
    """The library's model with the weights and positions of a Transformer of transformer.py; their logits must agree."""
    z, both = model.z, {}
    for part in ("encoder", "decoder"):
        both |= {f"{part}_layers": z[f"{part}_layers"], f"{part}_ffn_dim": z["ffn"], f"{part}_attention_heads": z["heads"]}
    config = PegasusConfig(vocab_size=z["target"], d_model=z["width"], **both, max_position_embeddings=len(model.positions),
                           activation_function="relu", scale_embedding=True, decoder_start_token_id=BOS, pad_token_id=PAD,
                           eos_token_id=EOS, forced_eos_token_id=None, attn_implementation="sdpa")
    weights = {library_name(name): t for name, t in model.qkv_parameters()}
    table = weights.pop("encoder.embedding.weight")
    weights |= {name + ".weight": table for name in ("lm_head", "model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens")}
    weights |= {f"model.{part}.embed_positions.weight": model.positions for part in ("encoder", "decoder")}
    weights["final_logits_bias"] = weights.pop("decoder.output.bias")[None]
    library = PegasusForConditionalGeneration(config).eval()
    library.load_state_dict(weights)
    check_logits(model, library)
    return library


@torch.inference_mode()
def check_logits(model, library):
    generator = torch.Generator().manual_seed(12)
    source, target = (torch.randint(4, model.z["target"], (16, 24), generator=generator) for _ in range(2))
    mask = torch.arange(24) < torch.arange(9, 25)[:, None]
    ours = model.output(model.features(source, mask[:, None, None], target))
    theirs = library(input_ids=source, attention_mask=mask.long(), decoder_input_ids=target).logits
    torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-4)


@torch.inference_mode()
def generate(library, source, lens, beam, length_penalty, max_length):
    """As transformer.beam_search: the library has the same rules, but continues with finished sentences until all are finished."""
    mask = (torch.arange(source.shape[1]) < lens[:, None]).long()
    rules = GenerationConfig(num_beams=beam, do_sample=False, length_penalty=length_penalty, early_stopping=True, max_new_tokens=max_length,
                             suppress_tokens=[PAD], decoder_start_token_id=BOS, pad_token_id=PAD, eos_token_id=EOS)
    rows = library.generate(source, attention_mask=mask, generation_config=rules)[:, 1:].tolist()
    return [[id for id in row if id not in (PAD, EOS)] for row in rows]
