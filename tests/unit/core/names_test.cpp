// Names of enum values, in both directions, and the errors for words that are not names.
#include "qkv/core/names.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

enum class Fruit { apple, red_currant, pear };
constexpr std::array<std::string_view, 3> names(Fruit) { return {"apple", "red-currant", "pear"}; }
enum class Nameless { one };

static_assert(Named<Fruit> && !Named<Nameless> && !Named<int>);
static_assert(name_of(Fruit::red_currant) == "red-currant");

TEST(Names, GoBothWays) {
  for (const Fruit fruit : every<Fruit>()) EXPECT_EQ(find_named<Fruit>(name_of(fruit)), fruit);
  EXPECT_EQ(every<Fruit>().size(), 3u);
  EXPECT_EQ(find_named<Fruit>("red_currant"), std::nullopt);
  EXPECT_EQ(find_named<Fruit>(""), std::nullopt);
  EXPECT_EQ(parse_name<Fruit>("pear", "fruit"), Fruit::pear);
  EXPECT_EQ(listed(names_of<Fruit>({Fruit::pear, Fruit::apple})), "pear, apple");
  EXPECT_EQ(listed({}, "|"), "");
}

TEST(Names, AnErrorListsThemAndSuggestsTheNearest) {
  const auto error_of = [](const char* word) {
    try {
      parse_name<Fruit>(word, "cake.yaml:3: fruit");
    } catch (const Error& e) {
      return text(e.what(), " | ", e.hint().in(Language::en));
    }
    return std::string();
  };
  EXPECT_EQ(error_of("peer"),
            "cake.yaml:3: fruit: got \"peer\", expected one of apple, red-currant, pear | did you mean \"pear\"?");
  EXPECT_EQ(error_of("stone"), "cake.yaml:3: fruit: got \"stone\", expected one of apple, red-currant, pear | ");
}

}  // namespace
}  // namespace qkv
