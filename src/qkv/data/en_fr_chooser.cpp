// Choosing phrases that make sense together: who can do what, to what, where, and with which adjectives.
#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/data/en_fr_grammar.h"

namespace qkv::en_fr {
namespace {

constexpr uint32_t mine =
    family | profession | pet | portable | clothing | machine | furniture | food | drink | ownable;
constexpr uint32_t countable = food | readable | animal | plant | family | portable;

template <class T>
const T* pick_where(Dice& dice, std::span<const T> from, auto&& fits) {
  std::vector<const T*> found;
  for (const T& one : from)
    if (fits(one)) found.push_back(&one);
  return found.empty() ? nullptr : found[dice.below(found.size())];
}

bool can_own(const Name& name, const Noun& noun) { return name.gender == Gender::feminine || noun.en != "dress"; }

NounPhrase third_person(NounPhrase::Kind kind, Gender gender, bool plural) {
  NounPhrase phrase;
  phrase.kind = kind;
  phrase.agreement = {.person = plural ? 4 : 2, .gender = gender, .plural = plural};
  return phrase;
}

// A man is handsome and everything else is beautiful, so that French "beau" has one translation.
bool fits(const Adjective& adjective, uint32_t classes, const Agreement& agreement) {
  const bool men = classes & person && agreement.gender == Gender::masculine;
  if (adjective.en == "handsome" && !men) return false;
  if (adjective.en == "beautiful" && men) return false;
  return (adjective.classes & classes) != 0;
}

}  // namespace

NounPhrase Chooser::pronoun() {
  // he and she share the verb's form with every noun and name, they with every plural; the other pronouns need more
  // examples.
  constexpr int shares[] = {0, 0, 0, 1, 1, 1, 1, 2, 3, 3, 3, 3, 4, 5};
  const int who = shares[dice_.below(std::size(shares))];
  NounPhrase phrase;
  phrase.agreement.person = std::min(who, 4);
  if (who == 5) phrase.agreement = {.person = 2, .gender = Gender::feminine};
  phrase.agreement.plural = who == 3 || who == 4;
  return phrase;
}

NounPhrase Chooser::named() {
  const Name& name = dice_.pick(names());
  NounPhrase phrase = third_person(NounPhrase::Kind::name, name.gender, false);
  phrase.name = &name;
  return phrase;
}

NounPhrase Chooser::noun(uint32_t classes, bool may_be_plural) {
  const Noun* noun = pick_where(dice_, nouns(), [&](const Noun& one) { return (one.classes & classes) != 0; });
  check(noun != nullptr, "[en-fr] no noun has one of the classes ", classes);
  const bool plural = may_be_plural && noun->count == Count::both && dice_.percent(35);
  NounPhrase phrase = third_person(NounPhrase::Kind::noun, noun->gender, plural);
  phrase.noun = noun;
  return phrase;
}

// Adjectives: one before the French noun, or one after it, or one of each (the small red car).
void Chooser::describe(NounPhrase& phrase, size_t percent) {
  if (phrase.kind != NounPhrase::Kind::noun || !dice_.percent(percent)) return;
  if (phrase.noun->classes & family && phrase.noun->count == Count::singular) return;
  const auto suits = [&](const Adjective& one, Position position) {
    // un beau frère and une petite amie would mean something else.
    const bool other_word = phrase.noun->classes & family && (one.masculine == "beau" || one.masculine == "petit");
    return one.position == position && !other_word && fits(one, phrase.noun->classes, phrase.agreement);
  };
  if (dice_.percent(55))
    phrase.before = pick_where(dice_, adjectives(), [&](const Adjective& one) { return suits(one, Position::before); });
  if (!phrase.before || dice_.percent(25)) {
    const bool joins = phrase.before != nullptr;
    phrase.after = pick_where(dice_, adjectives(), [&](const Adjective& one) {
      return suits(one, Position::after) && (!joins || one.joins);
    });
  }
}

NounPhrase Chooser::definite(uint32_t classes) {
  NounPhrase phrase = noun(classes);
  const bool is_family = phrase.noun->classes & family, is_mine = phrase.noun->classes & mine;
  if (is_mine && (is_family || dice_.percent(30))) {
    phrase.determiner = dice_.pick({Determiner::my, Determiner::your, Determiner::our, Determiner::my});
    const Name& owner = dice_.pick(names());
    if (dice_.percent(20) && !(phrase.noun->classes & (food | drink)) && can_own(owner, *phrase.noun)) {
      phrase.determiner = Determiner::the;
      phrase.name = &owner;
    }
  } else if (dice_.percent(20)) {
    phrase.determiner = Determiner::this_one;
  }
  describe(phrase, 30);
  return phrase;
}

NounPhrase Chooser::subject(uint32_t classes, Known known) {
  const bool people = classes & person;
  const size_t kind = dice_.below(100);
  if (people && kind < 40) return pronoun();
  if (people && kind < 58) return named();
  if (people && kind < 64) {
    NounPhrase both = third_person(NounPhrase::Kind::pair, Gender::masculine, true);
    both.pair = {named(), named()};
    if (both.pair[0].name == both.pair[1].name || dice_.percent(50)) {
      both.pair[1] = noun(family, false);
      both.pair[1].determiner = dice_.pick({Determiner::my, Determiner::your, Determiner::our});
    }
    const bool all_feminine =
        both.pair[0].agreement.gender == Gender::feminine && both.pair[1].agreement.gender == Gender::feminine;
    if (all_feminine) both.agreement.gender = Gender::feminine;
    return both;
  }
  if (kind < 90 || known == Known::yes) return definite(classes);
  NounPhrase phrase = noun(classes & ~uint32_t{family | profession});
  if (phrase.noun->count == Count::both && !(phrase.noun->classes & family))
    phrase.determiner =
        !phrase.agreement.plural ? Determiner::a : dice_.pick({Determiner::some, Determiner::two, Determiner::three});
  if (phrase.noun->classes & family) phrase.determiner = Determiner::my;
  describe(phrase, 30);
  return phrase;
}

// my, your and our are free; his, her and their belong to the subject, so that French "son" has one translation.
Determiner Chooser::possessive(const NounPhrase& subject) {
  if (subject.kind != NounPhrase::Kind::who && subject.classes() & person && dice_.percent(60)) {
    if (subject.agreement.person == 2)
      return subject.agreement.gender == Gender::feminine ? Determiner::her : Determiner::his;
    if (subject.agreement.person == 4) return Determiner::their;
    if (subject.agreement.person == 3) return Determiner::our;
    return subject.agreement.person == 0 ? Determiner::my : Determiner::your;
  }
  return dice_.pick({Determiner::my, Determiner::your, Determiner::our});
}

void Chooser::choose_object_determiner(NounPhrase& phrase, const Clause& clause) {
  const uint32_t classes = phrase.noun->classes;
  const bool plural = phrase.agreement.plural, is_mass = phrase.noun->count == Count::mass;
  const bool affirmative = clause.polarity == Polarity::affirmative;
  const Determiner indefinite = plural || is_mass ? Determiner::some : Determiner::a;
  const Word base = clause.verb->base;
  const size_t draw = dice_.below(100);
  const bool possesses = (classes & mine) && !(is_mass && classes & drink);
  if (base == "have") {
    phrase.determiner = indefinite;
  } else if (classes & family) {
    phrase.determiner = possessive(clause.subject);
  } else if (classes & ride) {
    phrase.determiner = Determiner::the;
  } else if (base == "like" && (plural || is_mass) && !(classes & person)) {
    phrase.determiner =
        draw < 75 ? Determiner::generic : Determiner::this_one;  // "the apples" would be the same French as "apples"
  } else if (base == "like" || base == "know") {
    phrase.determiner = draw < 40 && possesses ? possessive(clause.subject)
                        : draw < 75            ? Determiner::the
                                               : Determiner::this_one;
    if (base == "like" && plural)
      phrase.determiner = draw < 50 && possesses ? possessive(clause.subject) : Determiner::this_one;
  } else if (draw < 35 && (affirmative || !(base == "watch" || classes & (person | door)))) {
    phrase.determiner = indefinite;
  } else if (draw < 60 && possesses && base != "buy" && base != "want" && !(base == "give" && classes & food)) {
    phrase.determiner = possessive(clause.subject);
  } else {
    phrase.determiner = draw < 88 ? Determiner::the : Determiner::this_one;
    if (base == "want" || (classes & sound && is_mass)) phrase.determiner = indefinite;
  }
  if (phrase.determiner == Determiner::his && phrase.noun->en == "dress") phrase.determiner = Determiner::the;
  if (plural && affirmative && phrase.determiner == Determiner::some && classes & countable && base != "wear" &&
      dice_.percent(50))
    phrase.determiner =
        dice_.pick({Determiner::two, Determiner::three, Determiner::four, Determiner::five, Determiner::six});
}

bool Chooser::suits(const Clause& clause, const Noun& object) const {
  const Word base = clause.verb->base;
  if (object.en == clause.subject.head()) return false;
  if (base == "have" && object.classes & family && object.count == Count::singular) return false;
  if (base == "buy" && object.classes & letter) return false;
  if (base == "know" && object.count == Count::mass) return false;
  if (object.classes & film && !(clause.subject.classes() & person)) return false;
  const bool puts_on = base == "wear" || base == "have";
  const bool male =
      clause.subject.kind != NounPhrase::Kind::who && clause.subject.agreement.gender == Gender::masculine;
  return !(puts_on && object.en == "dress" && male);
}

NounPhrase Chooser::object(const Clause& clause) {
  uint32_t classes = clause.verb->objects;
  const Word base = clause.verb->base;
  const bool by_animal = !(clause.subject.classes() & person);
  if (classes & person && !by_animal && dice_.percent(30) && clause.subject.kind != NounPhrase::Kind::pair) {
    NounPhrase someone = named();
    if (clause.subject.name != someone.name) return someone;
  }
  if (classes & ride && dice_.percent(25)) classes = ride;  // only two nouns, against many people
  const bool several = base != "wear" && base != "have";
  const bool they_wear = base == "wear" && clause.subject.agreement.plural;
  NounPhrase phrase;
  for (int attempt = 0; attempt < 50; ++attempt) {
    phrase = noun(classes, several || they_wear || dice_.percent(40));
    const Noun& chosen = *phrase.noun;
    const uint32_t fodder = clause.subject.classes() & hunter ? hunter_food : grazing;
    const bool fits_animal = !by_animal || base == "watch" || chosen.classes & fodder;
    if (fits_animal && suits(clause, chosen) && phrase.agreement.plural >= they_wear) break;
  }
  choose_object_determiner(phrase, clause);
  const bool may_be_owned = phrase.noun->classes & (pet | portable | clothing | machine | family);
  const bool generic_in_french = base == "like" && phrase.agreement.plural;
  const bool owned_by_name =
      phrase.determiner == Determiner::the && may_be_owned && !generic_in_french && dice_.percent(15);
  const Name& owner = dice_.pick(names());
  if (owned_by_name && can_own(owner, *phrase.noun) && &owner != clause.subject.name) phrase.name = &owner;
  const bool numbered = phrase.determiner >= Determiner::two;
  phrase.negated = clause.polarity != Polarity::affirmative && !numbered;
  describe(phrase, phrase.negated ? 15 : 35);
  return phrase;
}

Place Chooser::somewhere(uint32_t classes) {
  Place place;
  if (classes & person) classes = Class::place;
  if (classes & Class::place && dice_.percent(12)) return place;  // at home
  place.noun = pick_where(dice_, nouns(),
                          [&](const Noun& one) { return one.place != PlaceKind::none && (one.classes & classes); });
  check(place.noun != nullptr, "[en-fr] no place has one of the classes ", classes);
  return place;
}

Place Chooser::destination(Place::Role role) {
  Place place;
  place.role = role;
  if (dice_.percent(35)) {
    place.town = &dice_.pick(towns());
  } else {
    place.noun = pick_where(
        dice_, nouns(), [&](const Noun& one) { return one.place == PlaceKind::at || one.place == PlaceKind::at_bare; });
  }
  return place;
}

Place Chooser::position() {
  struct Preposition {
    Word en, fr;
    uint32_t classes;
  };
  constexpr Preposition prepositions[] = {{"on", "sur", surface},
                                          {"under", "sous", surface},
                                          {"in", "dans", container},
                                          {"behind", "derrière", landmark},
                                          {"in front of", "devant", landmark}};
  const Preposition& chosen = prepositions[dice_.below(std::size(prepositions))];
  Place place;
  place.en_preposition = chosen.en;
  place.fr_preposition = chosen.fr;
  place.noun = noun(chosen.classes, false).noun;
  return place;
}

const Adjective* Chooser::predicate(const NounPhrase& subject) {
  const bool described = subject.before || subject.after;  // the happy nurse may be tired, but not sad
  return pick_where(dice_, adjectives(), [&](const Adjective& one) {
    const bool neutral = one.position == Position::predicate || (one.joins && !subject.after);
    return fits(one, subject.classes(), subject.agreement) && (!described || neutral) &&
           one.en != "new";  // in French it would be neuf
  });
}

const ObjectPronoun* Chooser::object_pronoun(const Clause& clause) {
  const Agreement& subject = clause.subject.agreement;
  const bool compound = clause.tense == Tense::past || clause.tense == Tense::perfect;
  const Word next = clause.tense == Tense::present ? clause.verb->forms[subject.person] : clause.verb->infinitive;
  const bool hides_gender = !compound && elides_before(next);
  return pick_where(dice_, object_pronouns(), [&](const ObjectPronoun& one) {
    const int person = one.agreement.person;
    const bool same = person == subject.person && person != 2 && person != 4;
    const bool within = (person == 3 && subject.person == 0) || (person == 0 && subject.person == 3);
    return !same && !within && !(person == 2 && hides_gender);
  });
}

}  // namespace qkv::en_fr
