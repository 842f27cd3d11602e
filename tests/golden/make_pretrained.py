"""Makes tiny pretrained folders with random weights, as Hugging Face's transformers writes them, and golden files beside them.

  python3 make_pretrained.py FOLDER [ARCHITECTURE ...]      # needs torch, transformers and sentencepiece

FOLDER/ARCHITECTURE is the model, FOLDER/ARCHITECTURE.golden.safetensors what it computes: ids, logits, attention of every layer and head,
and for the models that can be trained the gradient of every weight.
"""

import json
import os
import random
import sys

import sentencepiece
import torch
from safetensors.torch import save_file

ENGLISH = ["the cat is asleep", "a dog sees the red house", "we read two books", "the house is small", "she sings to the cat",
           "two dogs eat", "the red book is here", "we sing and they read", "a small cat eats the fish", "they see the sea"]
CHINESE = ["猫睡着了", "狗看见红房子", "我们读两本书", "房子很小", "她对猫唱歌", "两只狗在吃", "红书在这里", "我们唱歌他们读书", "小猫吃鱼",
           "他们看见大海"]


def randomize(model):
    """Weights large enough for attention to differ from uniform and for outputs to differ from each other."""
    for name, p in model.named_parameters():
        if p.requires_grad:
            norm = "norm" in name.lower() or ".ln_" in name
            with torch.no_grad():
                if norm and name.endswith("weight"):
                    p.copy_(1 + 0.2 * torch.randn_like(p))
                elif p.dim() > 1:
                    p.copy_(0.35 * torch.randn_like(p))
                else:
                    p.copy_(0.2 * torch.randn_like(p))
    return model.eval()


def gradients(model, loss, out):
    model.zero_grad()
    loss.backward()
    for name, p in model.named_parameters():
        if p.grad is not None:
            out["gradient." + name] = p.grad.clone()


def write(folder, name, golden):
    save_file({k: v.detach().contiguous().to(torch.int32 if v.dtype == torch.int64 else v.dtype).clone() for k, v in golden.items()},
              os.path.join(folder, name + ".golden.safetensors"))


def pieces(lines, path, size):
    text = path + ".txt"
    with open(text, "w", encoding="utf8") as f:
        f.write("\n".join(lines))
    sentencepiece.SentencePieceTrainer.train(input=text, model_prefix=path, vocab_size=size, model_type="unigram", hard_vocab_limit=False,
                                             normalization_rule_name="identity", minloglevel=2, bos_id=-1, eos_id=1, unk_id=0, num_threads=1)
    os.remove(text)
    os.remove(path + ".vocab")
    os.rename(path + ".model", path)
    model = sentencepiece.SentencePieceProcessor(model_file=path)
    return [model.id_to_piece(i) for i in range(model.get_piece_size())]


def marian(folder):
    from transformers import GenerationConfig, MarianConfig, MarianMTModel
    path = os.path.join(folder, "marian")
    os.makedirs(path, exist_ok=True)
    words = ["</s>", "<unk>"]
    for lines, name in ((CHINESE, "source.spm"), (ENGLISH, "target.spm")):
        words += [p for p in pieces(lines, os.path.join(path, name), 60) if p not in words]
    words.append("<pad>")
    pad = len(words) - 1
    with open(os.path.join(path, "vocab.json"), "w", encoding="utf8") as f:
        json.dump({w: i for i, w in enumerate(words)}, f, ensure_ascii=False)
    config = MarianConfig(vocab_size=len(words), decoder_vocab_size=len(words), d_model=16, encoder_layers=2, decoder_layers=3,
                          encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, dropout=0.0,
                          activation_function="swish", scale_embedding=True, max_position_embeddings=40, pad_token_id=pad, eos_token_id=0,
                          bos_token_id=0, decoder_start_token_id=pad, forced_eos_token_id=0, init_std=0.2, share_encoder_decoder_embeddings=True,
                          attn_implementation="eager")
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        model.model.shared.weight[pad].zero_()
        model.final_logits_bias.copy_(0.3 * torch.randn_like(model.final_logits_bias))
    model.generation_config = GenerationConfig(num_beams=4, length_penalty=1.0, max_length=24, bad_words_ids=[[pad]], pad_token_id=pad,
                                               eos_token_id=0, decoder_start_token_id=pad, forced_eos_token_id=0)
    number, golden, texts = {w: i for i, w in enumerate(words)}, {}, []
    source, target = (sentencepiece.SentencePieceProcessor(model_file=os.path.join(path, name)) for name in ("source.spm", "target.spm"))
    ids_of = lambda spm, line: [number.get(p, 1) for p in spm.encode(line, out_type=str)] + [0]
    padded = lambda rows, fill: torch.nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], batch_first=True, padding_value=fill)
    x, y = padded([ids_of(source, line) for line in CHINESE], pad), padded([ids_of(target, line) for line in ENGLISH], -100)
    read = torch.cat([torch.full((len(y), 1), pad), y[:, :-1].clamp(min=0)], 1)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(400):  # it learns these pairs by heart, so that greedy search and a beam have something to find
        adam.zero_grad()
        logits = model(input_ids=x, attention_mask=(x != pad).long(), decoder_input_ids=read).logits
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        with torch.no_grad():
            model.model.shared.weight[pad].zero_()
    model.save_pretrained(path)
    for i, line in enumerate(CHINESE[:4]):
        ids = ids_of(source, line)
        x = torch.tensor([ids])
        greedy = model.generate(x, num_beams=1, do_sample=False, max_length=24)[0]
        beam = model.generate(x, num_beams=4, do_sample=False, max_length=24, early_stopping=True)[0]
        with torch.no_grad():
            y = model(input_ids=x, decoder_input_ids=greedy[None, :-1], output_attentions=True)
        golden |= {f"{i}.source": x[0], f"{i}.greedy": greedy, f"{i}.beam": beam, f"{i}.logits": y.logits[0],
                   f"{i}.states": y.encoder_last_hidden_state[0], f"{i}.encoder": torch.cat(y.encoder_attentions),
                   f"{i}.decoder": torch.cat(y.decoder_attentions), f"{i}.cross": torch.cat(y.cross_attentions)}
        texts.append({"source": line, "pieces": source.encode(line, out_type=str)})
    x, y = golden["1.source"][None], golden["2.greedy"][None]  # another sentence: a large loss
    logits = model(input_ids=x, decoder_input_ids=y[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits[0], y[0, 1:])
    golden["loss"] = loss
    gradients(model, loss, golden)
    write(folder, "marian", golden)
    with open(os.path.join(folder, "marian.golden.json"), "w", encoding="utf8") as f:
        json.dump(texts, f, ensure_ascii=False, indent=1)


ALL = {"marian": marian}

if __name__ == "__main__":
    torch.set_num_threads(1)
    chosen = sys.argv[2:] or list(ALL)
    for one in chosen:
        torch.manual_seed(7)
        random.seed(7)
        ALL[one](sys.argv[1])
