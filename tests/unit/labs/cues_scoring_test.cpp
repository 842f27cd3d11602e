// Labs 10.1 and 10.3.
#include <map>

#include "unit/labs/labs_support.h"

using namespace qkv;
using namespace qkv::labs;

namespace {

class LabPage : public testing::TestWithParam<const char*> {
 protected:
  const Lab& lab() const { return *find_lab(GetParam()); }
};

// Run once for all tests.
const Page& page_of(const std::string& name) {
  static std::map<std::string, Page> pages;
  auto found = pages.find(name);
  return found != pages.end() ? found->second : pages.emplace(name, run(*find_lab(name), {})).first->second;
}

const Claim* claim_about(const Page& page, const std::string& words) {
  for (const Block& block : page.blocks())
    if (auto* claim = std::get_if<Claim>(&block); claim && english(claim->text).find(words) != std::string::npos)
      return claim;
  return nullptr;
}

}  // namespace

TEST_P(LabPage, ClaimsHoldForSeveralSeeds) {
  for (uint64_t seed : {1, 2, 17}) expect_claims_hold(run(lab(), {.seed = seed}));
}

TEST_P(LabPage, HasTextInBothLanguagesAndDrawsEveryFigure) {
  const Page& page = page_of(GetParam());
  expect_claims_hold(page);
  expect_words_in_both_languages(page);
  expect_figures_draw(page);
  expect_renders(lab(), page);
}

INSTANTIATE_TEST_SUITE_P(Labs, LabPage, testing::Values("10.1", "10.3"),
                         [](const auto& info) { return std::string(find_lab(info.param)->name); });

TEST(Labs, AreInTheOrderOfTheChapterAndFoundByNameAndSection) {
  EXPECT_EQ(find_lab("cues"), find_lab("10.1"));
  EXPECT_EQ(find_lab("scoring"), find_lab("10.3"));
  EXPECT_EQ(find_lab("nosuch"), nullptr);
  // 10.7 comes before 10.7.4, and 10.7.4 before 11.8.
  const auto place = [](const std::string& section) { return std::pair(std::stod(section), section); };
  for (size_t i = 1; i < all_labs().size(); ++i)
    EXPECT_LT(place(all_labs()[i - 1].section), place(all_labs()[i].section));
}

TEST(Labs, WatchSeesEveryBlockInOrder) {
  size_t seen = 0;
  const Page page = run(*find_lab("cues"), {}, [&](const Block&) { ++seen; });
  EXPECT_EQ(seen, page.blocks().size());
}

TEST(ScoringLab, PrintsTheBooksDemos) {
  const std::string printed = everything_printed(page_of("10.3"));
  EXPECT_NE(printed.find("additive:\n[[[2, 3, 4, 5]],\n [[10, 11, 12, 13]]]\nscaled dot product:\n[[[2, 3, 4, 5]],\n "
                         "[[10, 11, 12, 13]]]\n"),
            std::string::npos);
  EXPECT_NE(printed.find("[[[4.5]],\n [[14.5]]]"), std::string::npos);
  EXPECT_NE(printed.find("[[8717, 9998, 9998],\n [8125, 9312, 9312]]"), std::string::npos);
  EXPECT_NE(printed.find("(2, 3, 4) x (2, 4, 6) -> (2, 3, 6)"), std::string::npos);
}

TEST(ScoringLab, ShowsWhatTheSlipsOfTheNoteWouldDo) {
  const Page& page = page_of("10.3");
  ASSERT_NE(claim_about(page, "Without softmax"), nullptr);
  EXPECT_EQ(english(claim_about(page, "Without softmax")->measured),
            "outputs (1258498, 4560493) and (1172392, 4248527)");
  ASSERT_NE(claim_about(page, "the answer is 45.5"), nullptr);
  EXPECT_EQ(english(claim_about(page, "the answer is 45.5")->measured),
            "f(57) = 45.50000, weights 1.3 × 10⁻⁸, 0.500, 0.500");
}

TEST(CuesLab, ListsTheWordsOfTheNotes) {
  const Page& page = page_of("10.1");
  const std::string note = markdown(*find_lab("cues"), page, Language::en);
  for (const char* word :
       {"意志提示", "volitional cue, query", "非自主性提示", "感官输入", "注意力汇聚 / 注意力池化", "$\\alpha$"})
    EXPECT_NE(note.find(word), note.npos) << word;
}

TEST(LabTables, CellsInWordsFollowTheLanguage) {
  Page page({});
  page.word_table({verbatim("head")}, {{in_both("a word in a cell", "词")}});
  page.table({verbatim("head")}, {{"1.5"}});
  EXPECT_NE(plain(page.blocks()[0], Language::en).find("a word in a cell"), std::string::npos);
  EXPECT_NE(plain(page.blocks()[0], Language::zh).find("词"), std::string::npos);
  EXPECT_NE(plain(page.blocks()[1], Language::zh).find("1.5"), std::string::npos);
}

TEST(Fact, IsShownWithoutATickAndIsNotAClaim) {
  Page page({});
  page.fact(in_both("The table has two rows.", "表有两行。"), verbatim("2 rows"));
  page.fact(verbatim("It has no number."));
  EXPECT_EQ(page.claims(), 0);
  EXPECT_EQ(plain(page.blocks()[0], Language::en), "-     The table has two rows. [2 rows]\n");
  EXPECT_EQ(plain(page.blocks()[1], Language::en), "-     It has no number.\n");
  const Lab lab{"9", "test", verbatim("Test"), {}};
  EXPECT_NE(markdown(lab, page, Language::zh).find("\n- 表有两行。 (2 rows)\n"), std::string::npos);
  EXPECT_NE(html_report({{&lab, page, 1}}, Language::en).find("<div class=\"fact\">It has no number.</div>"),
            std::string::npos);
}

TEST(FailedClaim, IsCountedAndMarkedInEveryForm) {
  Page page({});
  page.claim(false, verbatim("Two is three."), verbatim("2"));
  page.claim(true, verbatim("Two is two."), verbatim("2"));
  EXPECT_EQ(page.claims(), 2);
  EXPECT_EQ(page.failed_claims(), 1);
  EXPECT_TRUE(plain(page.blocks()[0], Language::en).starts_with("FAILED"));
  const Lab lab{"9", "test", verbatim("Test"), {}};
  EXPECT_NE(markdown(lab, page, Language::en).find("- ✗ Two is three. (2)"), std::string::npos);
  EXPECT_NE(html_report({{&lab, page, 1}}, Language::en).find("class=\"claim bad\""), std::string::npos);
}
