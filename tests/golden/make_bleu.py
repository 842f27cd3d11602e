"""Makes bleu.json with sacreBLEU: our own sentences tokenised and scored under every setting, as text that must agree to the character."""

import itertools
import json
import sys

import sacrebleu
from sacrebleu.metrics.bleu import BLEU, _get_tokenizer
from sacrebleu.metrics.chrf import CHRF

TOKENIZERS = ["13a", "none", "char", "intl", "zh"]
SMOOTHINGS = [("exp", None), ("floor", None), ("floor", 0.25), ("add-k", None), ("add-k", 2), ("none", None)]

# name -> (hypothesis, references)
CORPORA = {
    "plain": (
        [
            "The small cat sleeps on the warm roof.",
            "Nobody knew where the key was",
            "It costs 1,000.5 euros, not 1.000,5!",
            "a b c d e f",
        ],
        [
            [
                "The small cat sleeps on the warm roof.",
                "Nobody knows where the key is.",
                "It costs 1,000.5 euros, not 1,000.5!",
                "a b c x e f",
            ],
        ],
    ),
    "two_references": (
        ["The the the the dog barks loudly", "She reads a book by the window .", "", "Go on!"],
        [
            ["The dog barks at the gate", "She is reading a book by the window.", "nothing here", "Keep going!"],
            ["A dog is barking loudly at the garden gate of the old house", "By the window, she reads a book.", "", "Go on, please!"],
        ],
    ),
    "three_references": (
        ["il fait froid ce soir", "une pomme rouge, s'il vous plaît"],
        [
            ["il fait très froid ce soir", "une pomme rouge"],
            ["ce soir il fait froid dehors", "s'il vous plaît, une pomme rouge"],
            ["froid", "Une pomme verte, s'il vous plaît."],
        ],
    ),
    "punctuation": (
        [
            "&quot;Yes&quot; &amp;amp; &lt;no&gt; <skipped>maybe",
            "well-known 3-4 and 10-year-old (see [1], {2})...",
            "e-mail: a.b@c.de; 50% off / $9.99 #1 ~x `y` ^z",
            "“Smart quotes” ‘and’ — dashes – …",
            "5.-6,7 .8 9. ,,.. 'tis o'clock",
            "£ € © ® + = < > | × ÷ ∞",
        ],
        [
            [
                "\"Yes\" &amp; <no> maybe",
                "well-known 3 - 4 and 10-year-old (see [1], {2}) ...",
                "e-mail: a.b@c.de; 50 % off / $9.99 # 1 ~ x `y` ^ z",
                "\"Smart quotes\" 'and' - dashes - ...",
                "5.- 6,7 .8 9 . , , . . 'tis o 'clock",
                "£ € © ® + = < > | × ÷ ∞",
            ],
        ],
    ),
    "many_scripts": (
        [
            "我们今天去公园，好吗？",
            "GPU有8GB显存。「价格」：1,999.5元",
            "Москва — столица России.",
            "Ο ΟΔΥΣΣΕΥΣ Σ ΑΣΑΣ. ΑΣ' Α'ΣΒ",
            "İstanbul IŞIK ẞ ǅ ⒶⅠ",
            "cafe\u0301 naïve e\u0301\u0301",
            "😀 ok 👍🏽! ☀\ufe0f \U00020000\U0002f800",
            "١٢٣٫٥ १,२ ½² Ⅷ.",
            "a\u00a0b\u3000c\u2003d\u200be\x1ff \u0085",
            "한국어 文章 かな。",
        ],
        [
            [
                "我们今天去公园好吗？",
                "GPU 有 8GB 显存。价格：1,999.5 元",
                "москва - столица России",
                "ο οδυσσευς σ ασας. ας' α'σβ",
                "i\u0307stanbul işik ß ǆ ⓐⅰ",
                "café naïve e\u0301",
                "😀 okay 👍! ☀ \U00020000 \U0002f800",
                "١٢٣ १ , २ ½ Ⅷ",
                "a b c d e f",
                "한국어 の 文章",
            ],
        ],
    ),
    "all_wrong": (["one two three four five", "six"], [["eins zwei drei vier", "sechs"]]),
    "all_empty": (["", ""], [["something was here", "and here"]]),
    "empty_both": ([""], [[""]]),
    "empty_reference": (["words without a reference"], [[""]]),
    "short": (["yes", "oh no"], [["yes", "oh dear no"]]),
    "one_long_line": (["the " * 40 + "end "], [["the end of the " * 6]]),
    "white_space": (["  two  spaces\tand tabs  ", "trailing \u00a0"], [["two spaces and tabs", " trailing"]]),
}


def bleu_settings():
    for tokenizer, (smooth, value), lowercase, effective in itertools.product(TOKENIZERS, SMOOTHINGS, [False, True], [False, True]):
        if not effective or tokenizer == "13a":
            smoothing = {"smooth_method": smooth, "smooth_value": value}
            yield {"tokenize": tokenizer, **smoothing, "lowercase": lowercase, "effective_order": effective}


def chrf_settings():
    for words, lowercase, whitespace, eps in itertools.product([0, 1, 2], *[[False, True]] * 3):
        yield {"word_order": words, "lowercase": lowercase, "whitespace": whitespace, "eps_smoothing": eps}


def scored(make, settings):
    """The settings, the signature for one reference, and what follows the equal sign for every corpus."""
    signature, scores = "", {}
    for name, (hypothesis, references) in CORPORA.items():
        metric = make(**settings)
        score = metric.corpus_score(hypothesis, references)
        signed = metric.get_signature()
        signed.update("version", "VERSION")
        signed.update("nrefs", 1)
        signature = f"{score.name}|{signed.format()}"
        scores[name] = score.format(width=4).split(" = ", 1)[1]
    return {"settings": settings, "signature": signature, "scores": scores}


def sentence_scores(hypothesis, references):
    metrics = [BLEU(force=True, effective_order=True), CHRF(), CHRF(word_order=2)]
    return [[f"{m.sentence_score(line, list(refs)).score:.4f}" for m in metrics] for line, *refs in zip(hypothesis, *references)]


def main():
    lines = sorted({line for hypothesis, references in CORPORA.values() for text in [hypothesis, *references] for line in text})
    out = {
        "made_with": "sacreBLEU " + sacrebleu.__version__,
        "corpora": {name: {"hypothesis": h, "references": r, "sentences": sentence_scores(h, r)} for name, (h, r) in CORPORA.items()},
        "lines": [{"line": x, "lower": x.lower()} | {t: _get_tokenizer(t)()(x.rstrip()) for t in TOKENIZERS} for x in lines],
        "bleu": [scored(lambda **x: BLEU(force=True, **x), x) for x in bleu_settings()],
        "chrf": [scored(CHRF, x) for x in chrf_settings()],
    }
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        parts = [f"{json.dumps(key)}: " + (json.dumps(value) if not isinstance(value, list) else
                 "[\n" + ",\n".join(json.dumps(x, ensure_ascii=False) for x in value) + "\n]") for key, value in out.items()]
        f.write("{\n" + ",\n".join(parts) + "\n}\n")


main()
