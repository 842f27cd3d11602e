"""Makes small tokenizers of every kind with the `tokenizers` library, and what they do with lines in many scripts.

    python3 tests/golden/make_tokenizers.py tests/golden/tokenizers

Each goes to FOLDER/NAME.json: what tokenizer.json holds, and the ids and decoded texts of the lines, which all share: lines.json. Needs `pip install tokenizers`. The sentences are our own.
"""

import json
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SENTENCES = """The old clock in the hall struck nine, and nobody noticed that it was wrong.
We'll need 12,500 bricks and 3.75 tonnes of sand; that isn't cheap, is it?
She said: "Don't open the window, it's raining on the piano again!"
I've counted them twice -- there are twenty-three, not twenty-two.
Le vieux pêcheur a réparé son filet près du phare, où l'été sentait le sel.
Qu'est-ce que vous en pensez ? Çà et là, des cœurs et des œufs « à la française ».
Die Straße führt über die Brücke, an größeren Häusern vorbei, bis zur Mühle.
Der Bäcker weiß: 42 Brötchen kosten heute 16,80 €.
注意力机制是深度学习中的重要思想。
昨天下午，我们在河边看见了三只白色的鸟。
Tiếng Việt có nhiều dấu: ở đây, người ta uống cà phê sữa đá.
Вчера вечером шёл дождь, и мы остались дома с книгой.
Η γάτα κοιμάται στον ήλιο, δίπλα στο παλιό πηγάδι.
الجو جميل اليوم، وسنذهب إلى السوق في المساء.
החתול ישן על הכיסא ליד החלון.
आज मौसम अच्छा है, हम बाज़ार जाएँगे।
วันนี้อากาศดี เราจะไปตลาดตอนเย็น
오늘은 날씨가 좋아서 공원에 갔어요.
きょうは天気がいいので、カメラを持って出かけます。
The 🐈 sat on the 🧶; 👩‍👩‍👧 laughed 😀😀!""".split("\n")

ODD = ["", " ", "  two  spaces   three ", "tab\tand\nline\r\nends\n\n", "\u00a0hard\u202fblanks\u3000here\u200bzero", "e\u0301 n\u0303o a\u0323\u0302",
       "I\u0307stanbul İstanbul ſtraße ﬁn ½ Ⅻ ２３", "a\u0301\u0301\u0301\u0301\u0301b", "\x01con\x7ftrol\x85\ufeff\ufffd", "\u0e01\u0e33 क्षि ﷺ ㄱㅏ 각",
       "don't DON'T we'LL 'tis '", "x" * 150, "[CLS] and <s> and </s> text", "a<mask>b <mask> c", "▁already ▁▁marked", "##ing ##", "https://a.b/c?d=1&e=%20#f",
       "🇫🇷👍🏽❤️🤷‍♀️1️⃣", "𝒳𝓎 𠀀𠀁", "1234567 12 3 1,000,000", "\U000e0061\ue000", "end with space ", "\u2028\u2029", "emoji emojis The Time  now"]


def lines():
    chance = random.Random(23)
    words = " ".join(SENTENCES).split(" ")
    out = SENTENCES + ODD
    blanks = [" ", " ", " ", "", "  ", "\t", "\n", "\u00a0", "\u3000"]
    while len(out) < 200:
        out.append("".join(chance.choice(words) + chance.choice(blanks) for _ in range(chance.randint(1, 9))))
    return out


def trained(model, trainer, normalizer=None, splitter=None, decoder=None):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if splitter:
        tokenizer.pre_tokenizer = splitter
    if decoder:
        tokenizer.decoder = decoder
    tokenizer.train_from_iterator(SENTENCES * 2, trainer)
    return tokenizer


def byte_level(special, splitter, size=420, **options):
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=special, show_progress=False)
    return trained(models.BPE(**options), trainer, None, splitter, decoders.ByteLevel())


def gpt2():
    tokenizer = byte_level(["<|endoftext|>"], pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


def roberta():
    tokenizer = byte_level(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], pre_tokenizers.ByteLevel(add_prefix_space=True))
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=True)
    return tokenizer


def llama3(digits="{1,3}"):
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + digits + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    splitter = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = byte_level(["<|begin_of_text|>"], splitter, ignore_merges=True)
    begin = processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                                          special_tokens=[("<|begin_of_text|>", 0)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), begin])
    return tokenizer


def qwen2():
    tokenizer = llama3("")
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def llama():
    bytes_ = ["<0x%02X>" % i for i in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>", "<s>", "</s>"] + bytes_, limit_alphabet=60, max_token_length=8, show_progress=False)
    tokenizer = trained(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), trainer,
                        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]))
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = content["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return tokenizer


def bert():
    tokenizer = trained(models.WordPiece(unk_token="[UNK]"),
                        trainers.WordPieceTrainer(vocab_size=700, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False),
                        normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece())
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                             special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def words():
    tokenizer = trained(models.WordPiece(unk_token="[UNK]"),
                        trainers.WordPieceTrainer(vocab_size=600, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False),
                        normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()]),
                        pre_tokenizers.Whitespace(), decoders.WordPiece(cleanup=False))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return tokenizer


def unigram(scheme, split, form):
    tokenizer = trained(models.Unigram(), trainers.UnigramTrainer(vocab_size=450, special_tokens=["<unk>", "<pad>", "[X Y]"], unk_token="<unk>", show_progress=False),
                        normalizers.Sequence([form, normalizers.Replace(Regex(" {2,}"), " "), normalizers.Lowercase()]),
                        pre_tokenizers.Metaspace(prepend_scheme=scheme, split=True), decoders.Metaspace(prepend_scheme=scheme))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    return tokenizer


def suffix():
    splitter = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("isolated"), pre_tokenizers.Digits(True)])
    tokenizer = trained(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"),
                        trainers.BpeTrainer(vocab_size=700, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False),
                        normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]), splitter, decoders.BPEDecoder("</w>"))
    tokenizer.add_tokens([AddedToken("emoji", single_word=True), AddedToken("The Time", rstrip=True, normalized=True)])
    return tokenizer


MAKERS = {"gpt2": gpt2, "roberta": roberta, "llama3": llama3, "qwen2": qwen2, "llama": llama, "bert": bert, "words": words, "suffix": suffix,
          "unigram-always": lambda: unigram("always", True, normalizers.NFKC()), "unigram-first": lambda: unigram("first", False, normalizers.NFKD()),
          "unigram-never": lambda: unigram("never", True, normalizers.NFC())}


def main(folder):
    shared = lines()
    with open(f"{folder}/lines.json", "w", encoding="utf8") as file:
        json.dump(shared, file, ensure_ascii=True, indent=0)
    for name, make in MAKERS.items():
        tokenizer = make()
        encoded = [tokenizer.encode(line) for line in shared]
        golden = {"tokenizer": json.loads(tokenizer.to_str()), "ids": [e.ids for e in encoded], "decoded": [tokenizer.decode(e.ids) for e in encoded],
                  "pair": tokenizer.encode(shared[0], shared[1]).ids, "pair_types": tokenizer.encode(shared[0], shared[1]).type_ids}
        with open(f"{folder}/{name}.json", "w", encoding="utf8") as file:
            json.dump(golden, file, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main(sys.argv[1])
