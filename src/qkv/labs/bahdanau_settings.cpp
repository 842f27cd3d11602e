// Lab 10.4: text without spaces, other settings, an encoder of another size than the decoder.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "qkv/data/subwords.h"
#include "qkv/data/text.h"
#include "qkv/labs/bahdanau.h"

namespace qkv::labs::bahdanau {
namespace {

// Sentences of this program in one language, without formulas and code: the questions and answers of the exercises.
std::vector<std::string> own_sentences(Language language) {
  std::vector<std::string> out;
  for (const Exercise& exercise : all_exercises())
    for (const Text* text : {&exercise.heading, &exercise.question, &exercise.answer}) {
      std::string sentence = text->in(language);
      if (sentence.find_first_of("$`") == sentence.npos) out.push_back(std::move(sentence));
    }
  return out;
}

std::vector<std::string> characters_of(const std::string& sentence) {
  std::vector<std::string> out;
  for (size_t i = 0; i < sentence.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(sentence[i]) & 0xC0) != 0x80;
    if (starts)
      out.emplace_back(1, sentence[i]);
    else
      out.back() += sentence[i];
  }
  return out;
}

// What becomes of new sentences with the tokens that the others have.
struct Split {
  int64_t vocabulary = 0, tokens = 0, unknown = 0;
  double length = 0;  // tokens per sentence
  double share_unknown() const {
    return static_cast<double>(unknown) / static_cast<double>(std::max<int64_t>(tokens, 1));
  }
};

template <class Tokens>
Split judge(const std::vector<std::string>& read, const std::vector<std::string>& fresh, const Tokens& tokens_of) {
  std::set<std::string> known;
  for (const std::string& sentence : read)
    for (const std::string& token : tokens_of(sentence)) known.insert(token);
  Split out;
  out.vocabulary = static_cast<int64_t>(known.size());
  for (const std::string& sentence : fresh)
    for (const std::string& token : tokens_of(sentence)) {
      ++out.tokens;
      out.unknown += !known.contains(token);
    }
  out.length = static_cast<double>(out.tokens) / static_cast<double>(std::max<size_t>(fresh.size(), 1));
  return out;
}

Subwords pieces_of(const std::vector<std::string>& read, int32_t size) {
  try {
    return Subwords::train(read, {.size = size});
  } catch (const SubwordSizeError& e) {
    return Subwords::train(read, {.size = e.nearest()});
  }
}

Split judge_pieces(const std::vector<std::string>& read, const std::vector<std::string>& fresh, int32_t size) {
  const Subwords model = pieces_of(read, size);
  Split out;
  out.vocabulary = model.size();
  for (const std::string& sentence : fresh)
    for (const int32_t id : model.encode(sentence)) {
      ++out.tokens;
      out.unknown += id == 0;
    }
  out.length = static_cast<double>(out.tokens) / static_cast<double>(std::max<size_t>(fresh.size(), 1));
  return out;
}

std::vector<std::string> row(const Split& split) {
  return {grouped(split.vocabulary), percent(split.share_unknown()), rounded(split.length, 1)};
}

std::vector<std::string> size_and_losses(const Trained& t, const SentencePairs& judge) {
  return {grouped(t.run.model().parameters().count()), rounded(t.losses.back(), 3), rounded(forced_loss(t, judge), 3)};
}

std::vector<Text> size_and_losses_head() {
  return {verbatim(""), tr("parameters"), tr("last training loss"), tr("nats per token, sentences judged on")};
}

}  // namespace

void spaces_step(Page& page) {
  page.exercise("9.5.2");
  std::vector<std::string> read[2], fresh[2];
  for (const Language language : {Language::en, Language::zh}) {
    const auto side = static_cast<size_t>(language);
    const auto all = own_sentences(language);
    for (size_t i = 0; i < all.size(); ++i) (i % 4 == 3 ? fresh : read)[side].push_back(all[i]);
  }
  page.say(tr(
      "The questions and answers of all exercises of this chapter, in English and in Chinese. Three quarters make the "
      "vocabulary; in the last quarter the tokens that are not in it are counted: {read} sentences and {fresh}.",
      "read"_a = read[0].size(), "fresh"_a = fresh[0].size()));
  const auto words = [](const std::string& sentence) {
    std::vector<std::string> out;
    for (const auto& word : split_blanks(sentence)) out.emplace_back(word);
    return out;
  };
  const Split english = judge(read[0], fresh[0], words), blanks = judge(read[1], fresh[1], words),
              letters = judge(read[1], fresh[1], characters_of),
              pieces = judge_pieces(read[1], fresh[1], static_cast<int32_t>(letters.vocabulary) + 200);
  named_table(page, {tr("tokens"), tr("vocabulary"), tr("unknown in new sentences"), tr("tokens per sentence")},
              {{tr("English, split at spaces"), row(english)},
               {tr("Chinese, split at spaces"), row(blanks)},
               {tr("Chinese, one per character"), row(letters)},
               {tr("Chinese, learned pieces"), row(pieces)}});
  page.claim(
      letters.share_unknown() < 0.5 * blanks.share_unknown() && pieces.share_unknown() < 0.5 * blanks.share_unknown(),
      tr("In Chinese most of what spaces cut off has never been seen; few characters are new."),
      tr("unknown: split at spaces {blanks}, characters {letters}, pieces {pieces}",
         "blanks"_a = percent(blanks.share_unknown()), "letters"_a = percent(letters.share_unknown()),
         "pieces"_a = percent(pieces.share_unknown())));
  page.claim(pieces.length < letters.length, tr("Learned pieces make sentences shorter than characters do."),
             tr("{pieces:.1f} and {letters:.1f} tokens per sentence", "pieces"_a = pieces.length,
                "letters"_a = letters.length));
}

void settings_step(Page& page) {
  page.exercise("9.7.1");
  const Trained &plain = trained(page, Kind::plain), &slow = trained(page, Kind::slow_rate),
                &wide = trained(page, Kind::wide);
  const SentencePairs judge = judged_on(page);
  page.say(tr("The model without attention, with one setting changed at a time:"));
  named_table(page, size_and_losses_head(),
              {{tr("as it is"), size_and_losses(plain, judge)},
               {tr("a fifth of the learning rate"), size_and_losses(slow, judge)},
               {tr("states twice as wide"), size_and_losses(wide, judge)}});
  page.claim(slow.losses.back() > plain.losses.back(),
             tr("With a fifth of the learning rate a training of this length does not get as far."),
             tr("last training loss {slow:.3f}, as it is {plain:.3f}", "slow"_a = slow.losses.back(),
                "plain"_a = plain.losses.back()));
  const double as_it_is = forced_loss(plain, judge), wider = forced_loss(wide, judge);
  if (page.data().empty())
    page.claim(wider < as_it_is, tr("States twice as wide do better on new sentences."),
               tr("{wider:.3f} nats per token, as it is {plain:.3f}", "wider"_a = wider, "plain"_a = as_it_is));
  page.say(tr("`qkv train --preset bahdanau --dump-config` prints all settings."));
}

void states_question_step(Page& page) {
  page.exercise("9.7.3");
  const Trained& mixed = trained(page, Kind::mixed);
  const auto& config = mixed.run.config().seq2seq();
  page.say(tr(
      "The bidirectional encoder above ends with {encoder} numbers per layer and the decoder begins with {decoder}: "
      "$s_0 = \\tanh(W h_T + b)$ with a matrix of {decoder} × {encoder}. If the numbers of layers differ, each layer "
      "of the decoder gets a matrix of its own.",
      "encoder"_a = config.encoder_width(), "decoder"_a = config.hidden));
  page.claim(config.encoder_width() == 2 * config.hidden && mixed.losses.back() < 0.7 * mixed.losses.front(),
             tr("States of different widths do no harm: the model with the matrix learns."),
             tr("training loss {first:.3f} after the first epoch, {last:.3f} after the last",
                "first"_a = mixed.losses.front(), "last"_a = mixed.losses.back()));
}

}  // namespace qkv::labs::bahdanau
