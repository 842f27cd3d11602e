// The list of exercises, the diagrams and the appendix of the report.
#include "qkv/labs/exercises.h"

#include "qkv/labs/appendix.h"
#include "unit/labs/labs_support.h"

namespace qkv::labs {
namespace {

TEST(Exercises, HaveALabAQuestionAndAnAnswerInBothLanguages) {
  std::set<std::string> numbers;
  for (const Exercise& exercise : all_exercises()) {
    const std::string number = exercise.numbers.at(0);
    EXPECT_NE(find_lab(exercise.lab), nullptr) << number;
    EXPECT_GT(exercise.seconds, 0) << number;
    for (const Text* text : {&exercise.heading, &exercise.question, &exercise.answer}) expect_both(*text);
    for (const std::string& n : exercise.numbers) {
      EXPECT_TRUE(numbers.insert(n).second) << n << " is there twice";
      EXPECT_EQ(find_exercise(n), &exercise);
    }
    EXPECT_NE(exercise.heading.in(Language::en).find(number), std::string::npos) << "the heading names " << number;
    EXPECT_EQ(exercise.title(Language::en).find("xercise"), std::string::npos) << exercise.title(Language::en);
    EXPECT_FALSE(exercise.title(Language::zh).empty());
  }
  EXPECT_EQ(numbers.size(), 61u);
  EXPECT_EQ(find_exercise("9.9.9"), nullptr);
}

TEST(Exercises, ComeInTheOrderOfTheirNumbers) {
  EXPECT_EQ(all_exercises().front().numbers[0], "9.5.1");
  EXPECT_EQ(all_exercises().back().numbers[0], "11.9.4");
}

TEST(Exercises, BeginWithQuestionAndAnswerOnAPage) {
  Page page({});
  page.exercise("10.4.1");
  page.say(verbatim("Evidence."));
  ASSERT_EQ(page.blocks().size(), 4u);
  EXPECT_TRUE(std::holds_alternative<Question>(page.blocks()[1]));
  EXPECT_TRUE(std::holds_alternative<Answer>(page.blocks()[2]));
  EXPECT_NE(plain(page.blocks()[1], Language::en).find("Question: Put an LSTM"), std::string::npos);
  const Lab lab{"9", "test", verbatim("Test"), {}};
  EXPECT_EQ(anchors(lab, page), std::vector<std::string>{"exercise-10.4.1"});
  const std::string html = html_report({{&lab, page, 1}}, Language::en);
  const size_t anchor = html.find("<h3 id=\"exercise-10.4.1\"><a id=\"exercise-11.4.1\"></a>");
  ASSERT_NE(anchor, html.npos);
  const size_t question = html.find("class=\"question\"", anchor), answer = html.find("class=\"short\"", anchor),
               evidence = html.find("<p>Evidence.</p>", anchor), end = html.find("</details>", anchor);
  EXPECT_TRUE(question < answer && answer < evidence && evidence < end && end != html.npos);
}

void first(Page& page) { page.exercise("10.2.1"); }
void second(Page& page) { page.exercise("10.2.2"); }

TEST(QuickTour, LeavesOutSlowStepsButKeepsTheirQuestions) {
  const Lab lab{"10.2", "kernel-regression", verbatim("Test"), {first, slow(second)}};
  LabOptions options;
  const std::string all = headings(run(lab, options));
  options.quick = true;
  const Page quick = run(lab, options);
  EXPECT_EQ(all.find("What the quick tour left out"), all.npos);
  EXPECT_NE(headings(quick).find("Exercise 10.2.2"), std::string::npos);
  EXPECT_NE(everything_said(quick, Language::en).find("The quick tour leaves the evidence out"), std::string::npos);
  EXPECT_NE(headings(quick).find("What the quick tour left out"), std::string::npos);
}

TEST(Report, ShowsALabThatEndedWithAnError) {
  Page page({});
  page.heading(verbatim("A step"));
  const Lab lab{"9", "test", verbatim("Test"), {}};
  const std::string html = html_report({{&lab, page, 1, verbatim("no such <file>")}}, Language::en);
  EXPECT_NE(html.find("class=\"failed\""), html.npos);
  EXPECT_NE(html.find("no such &lt;file&gt;"), html.npos);
  EXPECT_NE(html.find("Test ✗</a>"), html.npos) << "the contents mark it too";
}

TEST(Report, HasBothLanguagesAndLoadsNothing) {
  Page page({});
  page.say(in_both("A sentence of the report.", "报告的一句话。"));
  const Lab lab{"9", "test", verbatim("Test"), {}};
  for (const Language language : {Language::en, Language::zh}) {
    const std::string html = html_report({{&lab, page, 1}}, language, {.whole = true});
    EXPECT_NE(html.find("A sentence of the report."), html.npos);
    EXPECT_NE(html.find("报告的一句话。"), html.npos);
    EXPECT_NE(html.find(language == Language::en ? "data-lang=\"en\"" : "data-lang=\"zh\""), html.npos);
    for (const char* loaded : {" src=", "@import", "url(", "fetch("}) EXPECT_EQ(html.find(loaded), html.npos) << loaded;
    for (const char* id : {"exercises", "notes", "glossary", "bibliography"})
      EXPECT_NE(html.find("id=\"" + std::string(id) + "\""), html.npos) << id;
    expect_utf8(html, "the report");
  }
}

TEST(Diagrams, FitTheirBoxesInBothLanguagesAndLinkEveryBlock) {
  size_t count = 0;
  for (const Lab& lab : all_labs())
    for (const Sketch& sketch : sketches_of(lab.name)) {
      ++count;
      expect_both(sketch.caption);
      for (const Language language : {Language::en, Language::zh}) {
        EXPECT_TRUE(fits(sketch.diagram, language)) << sketch.name;
        expect_utf8(svg(sketch.diagram, language), sketch.name);
      }
      size_t linked = 0;
      for (const DiagramBox& box : sketch.diagram.boxes) linked += !box.link.empty();
      EXPECT_GE(4 * linked, 3 * sketch.diagram.boxes.size()) << sketch.name;
    }
  EXPECT_EQ(count, 9u);
}

TEST(Notes, HaveTheirLinesAndErrataInBothLanguages) {
  size_t lines = 0, errata = 0;
  std::set<std::string> names;
  for (const auto& notes : {notes_in_prose(), notes_of_chapter()})
    for (const Note& note : notes) {
      names.insert(note.name);
      for (const NoteLine& line : note.lines) {
        ++lines;
        expect_both(line.says);
        if (line.erratum.empty()) continue;
        ++errata;
        expect_both(line.erratum);
      }
    }
  EXPECT_EQ(names, (std::set<std::string>{"000", "001", "002", "003", "004"}));
  EXPECT_GE(lines, 90u);
  EXPECT_GE(errata, 15u);
}

}  // namespace
}  // namespace qkv::labs
