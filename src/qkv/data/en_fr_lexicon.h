// The words of the English-French corpus: every form is written out, none is guessed by rule.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace qkv::en_fr {

using Word = std::string_view;
enum class Gender { masculine, feminine };

/// What a noun can be used for; a verb or an adjective lists the classes it goes with.
enum Class : uint32_t {
  person = 1u << 0,
  adult = 1u << 1,
  family = 1u << 2,
  profession = 1u << 3,
  animal = 1u << 4,
  food = 1u << 5,
  hunter_food = 1u << 6,
  drink = 1u << 7,
  readable = 1u << 8,
  letter = 1u << 9,
  clothing = 1u << 10,
  machine = 1u << 11,
  portable = 1u << 12,
  door = 1u << 13,
  surface = 1u << 14,
  container = 1u << 15,
  landmark = 1u << 16,
  film = 1u << 17,
  sound = 1u << 18,
  place = 1u << 19,
  shop = 1u << 20,
  ride = 1u << 21,
  warm = 1u << 22,
  plant = 1u << 23,
  furniture = 1u << 24,
  market = 1u << 25,
  pet = 1u << 26,
  ownable = 1u << 27,
  hunter = 1u << 28,
  runner = 1u << 29,
  grazing = 1u << 30,
  outdoors = 1u << 31,
};

enum class Count { both, singular, mass };
enum class PlaceKind { none, in, at, at_bare };  // dans le jardin; à la gare; à l' école where English has no article

struct Noun {
  Word en, en_plural, fr, fr_plural;
  Gender gender;
  uint32_t classes;
  Count count = Count::both;
  PlaceKind place = PlaceKind::none;
};

enum class Position { before, after, predicate };  // relative to the noun; predicate: only after to be

struct Adjective {
  Word en;
  Word masculine, before_vowel, feminine, masculine_plural, feminine_plural;
  Position position;
  uint32_t classes;
  bool joins = false;     // may follow another adjective: the small red car
  Word comparative = "";  // taller
};

enum class Frame { none, object, receiver, listener, to_place, from_place, at_place, city };
enum class Aspect { progressive, simple };  // how English expresses the present without an adverb of habit

/// The tenses a verb is used in; modal covers wants to, can and is going to.
enum Use : uint32_t { present = 1, past = 2, perfect = 4, modal = 8, anything = 15 };

struct Verb {
  Word base, third, ing, en_past, en_participle, particle;
  Word infinitive, forms[5], participle;  // je, tu, il, nous, ils
  Frame frame;
  Aspect aspect;
  uint32_t objects;     // classes of the object
  uint32_t subjects;    // classes of the subject
  uint32_t places = 0;  // where it is done
  uint32_t uses = anything;
  bool etre = false, reflexive = false;
};

struct Name {
  Word word;
  Gender gender;
};

struct Town {
  Word en, fr, in;  // in: the French preposition of place; "le" means à + le
};

/// A phrase of time with its links: "0-0 1p2".
struct Time {
  Word en, fr, links;
};

std::span<const Noun> nouns();
std::span<const Adjective> adjectives();
std::span<const Verb> verbs();
std::span<const Name> names();
std::span<const Town> towns();
std::span<const Time> past_times();
std::span<const Time> present_times();
std::span<const Time> future_times();
std::span<const Time> habit_times();

const Verb& verb(Word base);
const Noun& noun(Word en);
const Adjective& adjective(Word en);
/// The forms of être, avoir, aller, vouloir, pouvoir, penser: je, tu, il, nous, ils.
extern const Word etre_forms[5], avoir_forms[5], aller_forms[5], vouloir_forms[5], pouvoir_forms[5], penser_forms[5];

/// Whether le, de, ne, que... lose their vowel before this word.
bool elides_before(Word word);

}  // namespace qkv::en_fr
