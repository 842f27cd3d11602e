// The tables of the English-French corpus: nouns, adjectives, names, places and times.
#include "qkv/data/en_fr_lexicon.h"

#include <algorithm>
#include <array>

#include "qkv/core/check.h"

namespace qkv::en_fr {
namespace {

constexpr Gender m = Gender::masculine, f = Gender::feminine;
constexpr Count both = Count::both, singular = Count::singular, mass = Count::mass;

constexpr Noun noun_table[] = {
    {"man", "men", "homme", "hommes", m, person | adult},
    {"woman", "women", "femme", "femmes", f, person | adult},
    {"boy", "boys", "garçon", "garçons", m, person},
    {"girl", "girls", "fille", "filles", f, person},
    {"child", "children", "enfant", "enfants", m, person | ownable},
    {"father", "", "père", "", m, person | family, singular},
    {"mother", "", "mère", "", f, person | family, singular},
    {"brother", "brothers", "frère", "frères", m, person | family},
    {"sister", "sisters", "sœur", "sœurs", f, person | family},
    {"friend", "friends", "ami", "amis", m, person | adult | family},
    {"teacher", "teachers", "professeur", "professeurs", m, person | adult | profession},
    {"doctor", "doctors", "médecin", "médecins", m, person | adult | profession},
    {"student", "students", "étudiant", "étudiants", m, person | profession},
    {"nurse", "nurses", "infirmière", "infirmières", f, person | adult | profession},
    {"dog", "dogs", "chien", "chiens", m, animal | pet | hunter | runner},
    {"cat", "cats", "chat", "chats", m, animal | pet | hunter | runner},
    {"bird", "birds", "oiseau", "oiseaux", m, animal},
    {"horse", "horses", "cheval", "chevaux", m, animal | runner},
    {"hamster", "hamsters", "hamster", "hamsters", m, animal | pet},
    {"apple", "apples", "pomme", "pommes", f, food | grazing},
    {"orange", "oranges", "orange", "oranges", f, food},
    {"cake", "cakes", "gâteau", "gâteaux", m, food},
    {"bread", "", "pain", "", m, food | hunter_food | grazing, mass},
    {"cheese", "", "fromage", "", m, food | hunter_food, mass},
    {"meat", "", "viande", "", f, food | hunter_food, mass},
    {"soup", "", "soupe", "", f, food | warm, mass},
    {"water", "", "eau", "", f, drink | warm | hunter_food | grazing, mass},
    {"milk", "", "lait", "", m, drink | warm | hunter_food, mass},
    {"coffee", "", "café", "", m, drink | warm, mass},
    {"tea", "", "thé", "", m, drink | warm, mass},
    {"book", "books", "livre", "livres", m, readable | portable},
    {"letter", "letters", "lettre", "lettres", f, readable | letter | portable},
    {"story", "stories", "histoire", "histoires", f, readable | letter | sound},
    {"dress", "dresses", "robe", "robes", f, clothing},
    {"shirt", "shirts", "chemise", "chemises", f, clothing},
    {"hat", "hats", "chapeau", "chapeaux", m, clothing | portable},
    {"coat", "coats", "manteau", "manteaux", m, clothing},
    {"car", "cars", "voiture", "voitures", f, machine | landmark},
    {"bike", "bikes", "vélo", "vélos", m, machine},
    {"key", "keys", "clé", "clés", f, portable},
    {"bag", "bags", "sac", "sacs", m, portable | container},
    {"box", "boxes", "boîte", "boîtes", f, container | door},
    {"table", "", "table", "", f, furniture | surface, singular},
    {"bed", "", "lit", "", m, furniture | surface, singular},
    {"door", "doors", "porte", "portes", f, door | landmark},
    {"window", "windows", "fenêtre", "fenêtres", f, door},
    {"flower", "flowers", "fleur", "fleurs", f, plant},
    {"tree", "trees", "arbre", "arbres", m, landmark},
    {"film", "films", "film", "films", m, film},
    {"song", "songs", "chanson", "chansons", f, sound},
    {"music", "", "musique", "", f, sound, mass},
    {"bus", "", "bus", "", m, ride, singular},
    {"train", "", "train", "", m, ride, singular},
    {"garden", "", "jardin", "", m, place | outdoors | ownable, singular, PlaceKind::in},
    {"kitchen", "", "cuisine", "", f, place | ownable, singular, PlaceKind::in},
    {"house", "houses", "maison", "maisons", f, place | landmark | ownable, both, PlaceKind::in},
    {"market", "", "marché", "", m, market, singular, PlaceKind::at},
    {"station", "", "gare", "", f, shop, singular, PlaceKind::at},
    {"school", "", "école", "", f, shop, singular, PlaceKind::at_bare},
    {"library", "", "bibliothèque", "", f, shop, singular, PlaceKind::at},
    {"restaurant", "", "restaurant", "", m, shop, singular, PlaceKind::at},
    {"hospital", "", "hôpital", "", m, shop, singular, PlaceKind::at},
    {"beach", "", "plage", "", f, place | outdoors, singular, PlaceKind::at},
    {"park", "", "parc", "", m, place | outdoors, singular, PlaceKind::in},
};

constexpr uint32_t living = person | animal;
constexpr uint32_t objects = clothing | machine | portable | container | furniture | door | landmark;

constexpr Adjective adjective_table[] = {
    {"small", "petit", "petit", "petite", "petits", "petites", Position::before, living | objects | plant | place,
     false, "smaller"},
    {"tall", "grand", "grand", "grande", "grands", "grandes", Position::before, person, false, "taller"},
    {"big", "grand", "grand", "grande", "grands", "grandes", Position::before,
     animal | objects | place | shop | market},
    {"handsome", "beau", "bel", "belle", "beaux", "belles", Position::before, person},  // men
    {"beautiful", "beau", "bel", "belle", "beaux", "belles", Position::before,
     living | clothing | machine | landmark | plant | place},
    {"old", "vieux", "vieil", "vieille", "vieux", "vieilles", Position::before,
     adult | animal | objects | readable | film | place | shop, false, "older"},
    {"new", "nouveau", "nouvel", "nouvelle", "nouveaux", "nouvelles", Position::before,
     clothing | machine | readable | film | furniture | profession},
    {"young", "jeune", "jeune", "jeune", "jeunes", "jeunes", Position::before, adult | animal, false, "younger"},
    {"good", "bon", "bon", "bonne", "bons", "bonnes", Position::before, food | drink | readable | film | sound},
    {"red", "rouge", "rouge", "rouge", "rouges", "rouges", Position::after,
     clothing | machine | furniture | plant | container | door, true},
    {"blue", "bleu", "bleu", "bleue", "bleus", "bleues", Position::after,
     clothing | machine | furniture | plant | container | door, true},
    {"black", "noir", "noir", "noire", "noirs", "noires", Position::after,
     clothing | machine | furniture | container | animal, true},
    {"white", "blanc", "blanc", "blanche", "blancs", "blanches", Position::after,
     clothing | machine | furniture | plant | door | animal, true},
    {"french", "français", "français", "française", "français", "françaises", Position::after,
     adult | profession | film | sound, true},
    {"intelligent", "intelligent", "intelligent", "intelligente", "intelligents", "intelligentes", Position::after,
     living},
    {"happy", "heureux", "heureux", "heureuse", "heureux", "heureuses", Position::after, person, false, "happier"},
    {"sad", "triste", "triste", "triste", "tristes", "tristes", Position::after, person | film | sound | letter, false,
     "sadder"},
    {"expensive", "cher", "cher", "chère", "chers", "chères", Position::after, clothing | machine | furniture},
    {"tired", "fatigué", "fatigué", "fatiguée", "fatigués", "fatiguées", Position::predicate, living},
    {"open", "ouvert", "ouvert", "ouverte", "ouverts", "ouvertes", Position::predicate, door | shop},
    {"closed", "fermé", "fermé", "fermée", "fermés", "fermées", Position::predicate, door | shop},
    {"hot", "chaud", "chaud", "chaude", "chauds", "chaudes", Position::predicate, warm},
    {"cold", "froid", "froid", "froide", "froids", "froides", Position::predicate, warm},
};

constexpr Name name_table[] = {{"paul", m}, {"pierre", m}, {"thomas", m}, {"marie", f}, {"julie", f}, {"anne", f}};

constexpr Town town_table[] = {{"paris", "paris", "à"},    {"london", "londres", "à"}, {"rome", "rome", "à"},
                               {"france", "france", "en"}, {"italy", "italie", "en"},  {"canada", "canada", "le"}};

constexpr Time past_table[] = {{"yesterday", "hier", "0-0"},
                               {"this morning", "ce matin", "0-0 1-1"},
                               {"last week", "la semaine dernière", "1p0 1-1 0-2"},
                               {"yesterday evening", "hier soir", "0-0 1-1"}};
constexpr Time present_table[] = {{"today", "aujourd'hui", "0-0"}, {"now", "maintenant", "0-0"}};
constexpr Time future_table[] = {{"tomorrow", "demain", "0-0"},
                                 {"this evening", "ce soir", "0-0 1-1"},
                                 {"next week", "la semaine prochaine", "1p0 1-1 0-2"}};
constexpr Time habit_table[] = {{"every day", "chaque jour", "0-0 1-1"},
                                {"every morning", "chaque matin", "0-0 1-1"},
                                {"every evening", "chaque soir", "0-0 1-1"}};

}  // namespace

std::span<const Noun> nouns() { return noun_table; }
std::span<const Adjective> adjectives() { return adjective_table; }
const Noun& noun(Word en) {
  for (const Noun& one : noun_table)
    if (one.en == en) return one;
  fail("[en-fr] there is no noun \"", en, "\"");
}

const Adjective& adjective(Word en) {
  for (const Adjective& one : adjective_table)
    if (one.en == en) return one;
  fail("[en-fr] there is no adjective \"", en, "\"");
}

std::span<const Name> names() { return name_table; }
std::span<const Town> towns() { return town_table; }
std::span<const Time> past_times() { return past_table; }
std::span<const Time> present_times() { return present_table; }
std::span<const Time> future_times() { return future_table; }
std::span<const Time> habit_times() { return habit_table; }

bool elides_before(Word word) {
  constexpr std::array<Word, 2> aspirated = {"hamster", "hamsters"};
  if (std::find(aspirated.begin(), aspirated.end(), word) != aspirated.end()) return false;
  constexpr std::array<Word, 17> starts = {"a", "e", "i", "o", "u", "y", "h", "à", "â",
                                           "é", "è", "ê", "î", "ô", "û", "œ", "ï"};
  return std::any_of(starts.begin(), starts.end(), [&](Word start) { return word.starts_with(start); });
}

}  // namespace qkv::en_fr
