// Lab 10.7: its claims, the numbers it must show, its three figures, its text in both languages.
#include <stdexcept>

#include "labs_support.h"
#include "qkv/data/en_fr.h"
#include "qkv/io/atomic_file.h"
#include "qkv/labs/transformer.h"
#include "qkv/models/transformer.h"

namespace qkv::labs {
namespace {

TEST(TransformerLab, IsFoundByNameAndSection) {
  ASSERT_TRUE(find_lab("10.7"));
  EXPECT_EQ(find_lab("10.7"), find_lab("transformer"));
  EXPECT_TRUE(find_lab("10.7")->takes_data);
}

void expect_numbers_of_the_book(const Page& page) {
  EXPECT_EQ(english(fact_with(page, "60,937 parameters").measured), "22,720 in the encoder, 38,217 in the decoder");
  EXPECT_NE(english(fact_with(page, "English edition's model").text).find("1,869,782"), std::string::npos);
  EXPECT_EQ(english(fact_with(page, "Layer norm: −1 and 1").measured), "±0.99998");
  const std::string printed = everything_printed(page);
  for (const char* words :
       {"[[-0.99998, 0.99998],\n [-0.99998, 0.99998]]", "[[-0.99998, -0.99998],\n [0.99998, 0.99998]]",
        "ones (2, 100, 24)        -> (2, 100, 24)", "decoder.1.cross (2, 8, 7, 100)"})
    EXPECT_NE(printed.find(words), printed.npos) << words;
}

// A reader who finds two losses of one model is told what each was computed on.
void expect_both_losses_explained(const Page& page) {
  bool training = false, mask = false;
  for (const Block& block : page.blocks())
    if (const auto* paragraph = std::get_if<Paragraph>(&block)) {
      const std::string said = english(paragraph->text);
      training |= said.find("judged on 400 held-out sentences of the same kind") != said.npos;
      mask |= said.find("is computed as in the first row but on other sentences") != said.npos &&
              said.find("validation, not the 400 held-out ones") != said.npos;
    }
  EXPECT_TRUE(training && mask);
}

// Two layers of four heads with words on the axes; weights on padding and on later words are exactly 0.
void expect_maps(const Page& page) {
  for (const char* name : {"encoder-self", "decoder-self", "cross"}) {
    const Figure& figure = figure_named(page, name);
    EXPECT_EQ(figure.rows, 2);
    EXPECT_EQ(figure.cols, 4);
    ASSERT_EQ(figure.panels.size(), 8u);
    for (const Panel& panel : figure.panels) {
      const auto& map = std::get<HeatMap>(panel.content);
      ASSERT_EQ(static_cast<int64_t>(map.x_tokens.size()), map.values.size(1)) << name;
      ASSERT_EQ(static_cast<int64_t>(map.y_tokens.size()), map.values.size(0)) << name;
      for (int64_t q = 0; q < map.values.size(0); ++q)
        for (int64_t k = 0; k < map.values.size(1); ++k)
          if (map.x_tokens[static_cast<size_t>(k)] == "<pad>" || (name == std::string("decoder-self") && k > q)) {
            EXPECT_EQ(map.values.at({q, k}), 0) << name << " " << q << " " << k;
          }
    }
  }
  const auto& encoder = std::get<HeatMap>(figure_named(page, "encoder-self").panels[0].content);
  EXPECT_EQ(encoder.x_tokens.back(), "<pad>");
  const auto& self = std::get<HeatMap>(figure_named(page, "decoder-self").panels[0].content);
  EXPECT_EQ(self.y_tokens.front(), "<bos>");
}

// Readers learn the answers by heart, so none may be missing or badly worded.
void expect_answers(const Page& page) {
  expect_exercises_in_order(page, {"Exercise 10.7.1", "Exercise 10.7.2", "Exercise 10.7.3",
                                   "Exercises 10.7.4 and 10.7.5", "Exercise 10.7.6"});
  const std::string en = everything_said(page, Language::en), zh = everything_said(page, Language::zh);
  EXPECT_NE(en.find("span corruption"), en.npos);
  EXPECT_NE(en.find("18 times as many within the window"), en.npos);
  EXPECT_NE(en.find("524,224"), en.npos) << "pairs of 4,096 positions within the window";
  EXPECT_NE(en.find("Answer."), en.npos);
  EXPECT_NE(zh.find("答："), zh.npos);
  for (const char* odd : {"掩码", "逐位置前馈", "写句子时", "听得见", "听位置", "强制翻译"})
    EXPECT_EQ(zh.find(odd), zh.npos) << odd;
}

// One test: it trains fifteen models.
TEST(TransformerLab, KeepsItsClaimsTextsFiguresAndTheNumbersOfTheBook) {
  const Lab& lab = *find_lab("10.7");
  const Page page = run(lab, {.seed = 3});
  EXPECT_GE(page.claims(), 20);
  expect_claims_hold(page);
  expect_words_in_both_languages(page);
  expect_figures_draw(page);
  expect_renders(lab, page);
  expect_numbers_of_the_book(page);
  expect_both_losses_explained(page);
  expect_answers(page);
  expect_maps(page);
}

// With sentences that are not the book's, only the claims about the book's file are left out.
TEST(TransformerLab, ReadsAnyFileOfPairs) {
  const std::string file = testing::TempDir() + "/transformer_lab_pairs.txt";
  std::string lines;
  for (const AlignedPair& pair : en_fr_corpus({.size = 40, .seed = 2}))
    lines += pair.source + "\t" + pair.target + "\n";
  write_file(file, lines);
  const Lab& lab = *find_lab("10.7");
  const Page page = run(lab, {.seed = 1, .data = file});
  EXPECT_GE(page.claims(), 18);
  EXPECT_TRUE(claim_with(page, "lower-triangular").holds);
  EXPECT_TRUE(claim_with(page, "those of the whole prefix").holds);
  EXPECT_THROW(claim_with(page, "published runs"), std::runtime_error);
  expect_words_in_both_languages(page);
  expect_figures_draw(page);
}

TEST(TransformerLab, SettingsOfTheBooksFileAreTheBooks) {
  using namespace transformer;
  const Page with({.seed = 5, .data = "fra.txt"});
  const TranslationConfig c = config_of(with, Kind::model), deep = config_of(with, Kind::deep_pre);
  EXPECT_EQ(c.data.pairs, "fra.txt");
  EXPECT_EQ(c.training.epochs, 200);
  EXPECT_EQ(c.transformer().hidden, 32);
  EXPECT_EQ(c.transformer().ffn, 64);
  EXPECT_EQ(c.training.seed, 5);
  EXPECT_FALSE(c.book.positions);
  EXPECT_EQ(deep.transformer().norm, NormPlace::pre);
  EXPECT_EQ(deep.transformer().layers, 6);
  EXPECT_EQ(config_of(with, Kind::additive).transformer().attention, ScorerKind::additive);
  EXPECT_EQ(config_of(with, Kind::no_positions).transformer().positions, PositionKind::none);
}

}  // namespace
}  // namespace qkv::labs
