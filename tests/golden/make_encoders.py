"""Makes tiny pretrained encoders of texts and images with random weights, as Hugging Face's transformers writes them, and golden files.

  python3 make_encoders.py FOLDER [NAME ...]      # needs torch, transformers, tokenizers, sentence-transformers and pillow

FOLDER/NAME is the model, FOLDER/NAME.golden.safetensors what it computes: ids, states, logits, attention of every layer and head, gradients.
"""

import json
import os
import random
import sys

import torch
from make_pretrained import ENGLISH, gradients, randomize, write

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZES = dict(hidden_size=16, num_hidden_layers=3, num_attention_heads=4, intermediate_size=24, hidden_dropout_prob=0.0,
             attention_probs_dropout_prob=0.0, attn_implementation="eager")
TEXTS = ["The cat is asleep", "two DOGS read the red book and they sing in the house", "猫 sees, a fish!"]


def word_pieces(path):
    """vocab.txt with every word of the sentences, some only in pieces, and the characters of the others."""
    words = sorted({w for line in ENGLISH for w in line.split()} - {"asleep", "books", "dogs"}) + ["as", "##leep", "##s", "猫", ",", "!"]
    with open(os.path.join(path, "vocab.txt"), "w", encoding="utf8") as f:
        f.write("\n".join(SPECIAL + words) + "\n")
    with open(os.path.join(path, "tokenizer_config.json"), "w", encoding="utf8") as f:
        json.dump({"do_lower_case": True, "model_max_length": 24, "tokenizer_class": "BertTokenizer"}, f, indent=1)
    from tokenizers import BertWordPieceTokenizer
    return BertWordPieceTokenizer(os.path.join(path, "vocab.txt"), lowercase=True)


def byte_pairs(path):
    """vocab.json and merges.txt as RoBERTa has them."""
    from tokenizers import ByteLevelBPETokenizer
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(ENGLISH * 3, vocab_size=300, min_frequency=1, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
                                  show_progress=False)
    tokenizer.save_model(path)
    with open(os.path.join(path, "tokenizer_config.json"), "w", encoding="utf8") as f:
        json.dump({"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>",
                   "mask_token": {"__type": "AddedToken", "content": "<mask>", "lstrip": True, "rstrip": False, "single_word": False,
                                  "normalized": False}, "tokenizer_class": "RobertaTokenizer"}, f, indent=1)
    return tokenizer


def masked(model, rows, mask, golden):
    """States, logits, maps of every row (ids, types), and the gradients of the loss of the second row with two hidden words."""
    for i, (ids, types) in enumerate(rows):
        x, t = torch.tensor([ids]), torch.tensor([types])
        with torch.no_grad():
            y = model(input_ids=x, token_type_ids=t, output_attentions=True, output_hidden_states=True)
        golden |= {f"{i}.ids": x[0], f"{i}.types": t[0], f"{i}.states": y.hidden_states[-1][0], f"{i}.logits": y.logits[0],
                   f"{i}.encoder": torch.cat(y.attentions)}
    ids, types = rows[1]
    hidden = torch.tensor([ids])
    hidden[0, 2] = hidden[0, 5] = mask
    loss = torch.nn.functional.cross_entropy(model(input_ids=hidden, token_type_ids=torch.tensor([types])).logits[0], torch.tensor(ids))
    golden |= {"hidden": hidden[0], "loss": loss}
    gradients(model, loss, golden)


def bert(folder):
    from transformers import BertConfig, BertForMaskedLM
    path = os.path.join(folder, "bert")
    os.makedirs(path, exist_ok=True)
    tokenizer = word_pieces(path)
    config = BertConfig(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=24, pad_token_id=0, **SIZES)
    model = randomize(BertForMaskedLM(config))
    model.save_pretrained(path)
    golden = {}
    encoded = [tokenizer.encode(t) for t in TEXTS] + [tokenizer.encode(TEXTS[0], TEXTS[2])]
    rows = [(e.ids, e.type_ids) for e in encoded]
    masked(model, rows, SPECIAL.index("[MASK]"), golden)
    x = torch.nn.utils.rnn.pad_sequence([torch.tensor(r[0]) for r in rows], batch_first=True)
    with torch.no_grad():
        golden["batch"] = model.bert(x, (x != 0).long()).last_hidden_state
    write(folder, "bert", golden)


def roberta(folder):
    from transformers import RobertaConfig, RobertaForMaskedLM
    path = os.path.join(folder, "roberta")
    os.makedirs(path, exist_ok=True)
    tokenizer = byte_pairs(path)
    config = RobertaConfig(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=40, pad_token_id=1, bos_token_id=0, eos_token_id=2,
                           type_vocab_size=1, layer_norm_eps=1e-5, **SIZES)
    model = randomize(RobertaForMaskedLM(config))
    model.save_pretrained(path)
    golden = {}
    rows = [([0] + tokenizer.encode(t).ids + [2], None) for t in TEXTS]
    masked(model, [(ids, [0] * len(ids)) for ids, _ in rows], 4, golden)
    write(folder, "roberta", golden)


def classes(folder):
    from transformers import BertConfig, BertForSequenceClassification
    path = os.path.join(folder, "bert-classes")
    os.makedirs(path, exist_ok=True)
    tokenizer = word_pieces(path)
    config = BertConfig(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=24, pad_token_id=0,
                        id2label={0: "animal", 1: "thing", 2: "person"}, label2id={"animal": 0, "thing": 1, "person": 2}, **SIZES)
    model = randomize(BertForSequenceClassification(config))
    model.save_pretrained(path)
    rows = [torch.tensor(tokenizer.encode(t).ids) for t in TEXTS]
    with torch.no_grad():
        golden = {"logits": torch.cat([model(row[None]).logits for row in rows])}
    # A step of fine-tuning: the texts as one padded batch, and the class of each.
    x = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    loss = model(x, attention_mask=(x != 0).long(), labels=torch.tensor([0, 2, 1])).loss
    golden["loss"] = loss
    gradients(model, loss, golden)
    write(folder, "bert-classes", golden)


def sentence(folder):
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, BertModel
    path = os.path.join(folder, "sentence")
    os.makedirs(os.path.join(path, "1_Pooling"), exist_ok=True)
    tokenizer = word_pieces(path)
    config = BertConfig(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=24, pad_token_id=0, **SIZES)
    randomize(BertModel(config)).save_pretrained(path)
    files = {"modules.json": [{"idx": i, "name": str(i), "path": p, "type": "sentence_transformers.models." + t}
                              for i, (p, t) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])],
             "1_Pooling/config.json": {"word_embedding_dimension": 16, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
                                       "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False},
             "sentence_bert_config.json": {"max_seq_length": 10, "do_lower_case": False}}
    for name, content in files.items():
        with open(os.path.join(path, name), "w", encoding="utf8") as f:
            json.dump(content, f, indent=1)
    model = SentenceTransformer(path, device="cpu")
    write(folder, "sentence", {"vectors": torch.tensor(model.encode(TEXTS))})


def vit(folder):
    from PIL import Image
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor
    path = os.path.join(folder, "vit")
    os.makedirs(path, exist_ok=True)
    config = ViTConfig(image_size=12, patch_size=4, id2label={0: "cat", 1: "dog", 2: "fish"}, label2id={"cat": 0, "dog": 1, "fish": 2}, **SIZES)
    model = randomize(ViTForImageClassification(config))
    with torch.no_grad():
        for p in (model.vit.embeddings.cls_token, model.vit.embeddings.position_embeddings):
            p.copy_(0.35 * torch.randn_like(p))
    model.save_pretrained(path)
    processor = ViTImageProcessor(size={"height": 12, "width": 12}, image_mean=[0.4, 0.5, 0.6], image_std=[0.2, 0.25, 0.3], resample=3)
    processor.save_pretrained(path)
    golden = {}
    for i, (width, height) in enumerate([(12, 12), (31, 17)]):
        image = Image.frombytes("RGB", (width, height), random.randbytes(3 * width * height))
        image.save(os.path.join(folder, f"vit.{i}.png"))
        x = processor(image, return_tensors="pt")["pixel_values"]
        with torch.no_grad():
            y = model(x, output_attentions=True, output_hidden_states=True)
        golden |= {f"{i}.pixels": x, f"{i}.logits": y.logits, f"{i}.encoder": torch.cat(y.attentions)}
    loss = torch.nn.functional.cross_entropy(model(golden["0.pixels"]).logits, torch.tensor([2]))
    golden["loss"] = loss
    gradients(model, loss, golden)
    write(folder, "vit", golden)


ALL = {"bert": bert, "roberta": roberta, "bert-classes": classes, "sentence": sentence, "vit": vit}

if __name__ == "__main__":
    torch.set_num_threads(1)
    for one in sys.argv[2:] or list(ALL):
        torch.manual_seed(11)
        random.seed(11)
        ALL[one](sys.argv[1])
