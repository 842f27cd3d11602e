"""Makes tiny pretrained folders with random weights, as Hugging Face's transformers writes them, and golden files beside them.

  python3 make_pretrained.py FOLDER [ARCHITECTURE ...]      # needs torch, transformers and sentencepiece

FOLDER/ARCHITECTURE is the model, FOLDER/ARCHITECTURE.golden.safetensors what it computes: ids, logits, attention of every layer and head,
and for the models that can be trained the gradient of every weight.
"""

import json
import os
import random
import struct
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


def learn(model, rows, pad, steps=300):
    """By heart, so that greedy search has something to find."""
    x = torch.nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], batch_first=True, padding_value=-100)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(steps):
        adam.zero_grad()
        logits = model(input_ids=x.clamp(min=pad)).logits[:, :-1]
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()


def decoder_only(folder, name, model, encode):
    """What a model that writes on its own computes: logits, maps, greedy texts after the first words of a line, and the gradients of a step."""
    golden, texts = {}, []
    for i, line in enumerate(ENGLISH[:4]):
        start = " ".join(line.split()[:2])
        x = torch.tensor([encode(line)])
        with torch.no_grad():
            y = model(input_ids=x, output_attentions=True, output_hidden_states=True)
        prompt = torch.tensor([encode(start)])
        greedy = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=12)[0, prompt.shape[1]:]
        golden |= {f"{i}.ids": x[0], f"{i}.logits": y.logits[0], f"{i}.states": y.hidden_states[-1][0], f"{i}.decoder": torch.cat(y.attentions),
                   f"{i}.prompt": prompt[0], f"{i}.greedy": greedy}
        texts.append({"text": line, "prompt": start})
    x = torch.cat([golden["1.ids"], golden["3.ids"]])[None]  # two lines in one: a large loss
    loss = torch.nn.functional.cross_entropy(model(input_ids=x[:, :-1]).logits[0], x[0, 1:])
    golden |= {"loss": loss, "loss.ids": x[0]}
    gradients(model, loss, golden)
    write(folder, name, golden)
    with open(os.path.join(folder, name + ".golden.json"), "w", encoding="utf8") as f:
        json.dump(texts, f, ensure_ascii=False, indent=1)


def llama_tokenizer(path):
    lines = os.path.join(path, "lines.txt")
    with open(lines, "w", encoding="utf8") as f:
        f.write("\n".join(ENGLISH * 4))
    sentencepiece.SentencePieceTrainer.train(input=lines, model_prefix=os.path.join(path, "tokenizer"), vocab_size=310, model_type="bpe",
                                             hard_vocab_limit=False, byte_fallback=True, normalization_rule_name="identity", minloglevel=2,
                                             unk_id=0, bos_id=1, eos_id=2, pad_id=-1, num_threads=1, character_coverage=1.0)
    os.remove(lines)
    os.remove(os.path.join(path, "tokenizer.vocab"))
    return sentencepiece.SentencePieceProcessor(model_file=os.path.join(path, "tokenizer.model"))


def write_llama2c(path, model, spm):
    """llama2.c's model.bin and tokenizer.bin: weights by kind, and rotation of neighbours instead of halves."""
    os.makedirs(path, exist_ok=True)
    c, w = model.config, model.state_dict()
    width = c.hidden_size // c.num_attention_heads
    neighbours = lambda x, heads: x.view(heads, 2, width // 2, c.hidden_size).transpose(1, 2).reshape(x.shape)
    layer = lambda i, name: w[f"model.layers.{i}.{name}.weight"]
    kinds = [("input_layernorm", None), ("self_attn.q_proj", c.num_attention_heads), ("self_attn.k_proj", c.num_key_value_heads),
             ("self_attn.v_proj", None), ("self_attn.o_proj", None), ("post_attention_layernorm", None), ("mlp.gate_proj", None),
             ("mlp.down_proj", None), ("mlp.up_proj", None)]
    angles = torch.outer(torch.arange(c.max_position_embeddings).float(), 10000.0 ** (-torch.arange(0, width, 2).float() / width))
    tensors = [w["model.embed_tokens.weight"]]
    tensors += [neighbours(layer(i, name), heads) if heads else layer(i, name) for name, heads in kinds for i in range(c.num_hidden_layers)]
    tensors += [w["model.norm.weight"], angles.cos(), angles.sin(), w["lm_head.weight"]]
    with open(os.path.join(path, "model.bin"), "wb") as f:
        f.write(struct.pack("7i", c.hidden_size, c.intermediate_size, c.num_hidden_layers, c.num_attention_heads, c.num_key_value_heads,
                            -c.vocab_size, c.max_position_embeddings))
        for x in tensors:
            f.write(x.detach().float().contiguous().numpy().tobytes())
    pieces = [spm.id_to_piece(i).replace("\u2581", " ").encode() for i in range(spm.get_piece_size())]
    with open(os.path.join(path, "tokenizer.bin"), "wb") as f:
        f.write(struct.pack("i", max(map(len, pieces))))
        for i, piece in enumerate(pieces):
            f.write(struct.pack("fi", spm.get_score(i), len(piece)) + piece)


def llama_like(folder, name, **settings):
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    spm = llama_tokenizer(path)
    config = LlamaConfig(vocab_size=spm.get_piece_size(), hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=32, bos_token_id=1, eos_token_id=2, attn_implementation="eager",
                         initializer_range=0.3, **settings)
    model = LlamaForCausalLM(config).eval()
    for key, p in model.named_parameters():
        if key.endswith(".bias"):
            torch.nn.init.normal_(p, std=0.2)
    encode = lambda line: [1] + spm.encode(line)
    learn(model, [encode(line) + [2] for line in ENGLISH], 0)
    model.generation_config = GenerationConfig(bos_token_id=1, eos_token_id=2)
    decoder_only(folder, name, model, encode)
    return path, model, spm


def llama(folder):
    path, model, spm = llama_like(folder, "llama", rms_norm_eps=1e-5, tie_word_embeddings=False)
    model.save_pretrained(path, max_shard_size="30KB")
    write_llama2c(os.path.join(folder, "llama2c"), model, spm)


def llama_tied(folder):
    path, model, spm = llama_like(folder, "llama_tied", rms_norm_eps=1e-6, tie_word_embeddings=True, attention_bias=True, mlp_bias=True,
                                  rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    model.save_pretrained(path)


def gpt2(folder):
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel
    path = os.path.join(folder, "gpt2")
    os.makedirs(path, exist_ok=True)
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(ENGLISH * 4, vocab_size=300, min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False)
    tokenizer.save_model(path)
    end = tokenizer.token_to_id("<|endoftext|>")
    config = GPT2Config(vocab_size=tokenizer.get_vocab_size(), n_positions=32, n_embd=16, n_layer=3, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
                        attn_pdrop=0.0, bos_token_id=end, eos_token_id=end, attn_implementation="eager", initializer_range=0.3)
    model = GPT2LMHeadModel(config).eval()
    for key, p in model.named_parameters():
        if key.endswith(".bias"):
            torch.nn.init.normal_(p, std=0.2)
    encode = lambda line: tokenizer.encode(line).ids
    learn(model, [encode(line) + [end] for line in ENGLISH], 0)
    model.generation_config = GenerationConfig(bos_token_id=end, eos_token_id=end, pad_token_id=end)
    decoder_only(folder, "gpt2", model, encode)
    model.save_pretrained(path)


ALL = {"marian": marian, "llama": llama, "llama_tied": llama_tied, "gpt2": gpt2}

if __name__ == "__main__":
    torch.set_num_threads(1)
    chosen = sys.argv[2:] or list(ALL)
    for one in chosen:
        torch.manual_seed(7)
        random.seed(7)
        ALL[one](sys.argv[1])
