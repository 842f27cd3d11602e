// The look of the report on a screen, light or dark, and on paper; and the script of its buttons.
#include "qkv/labs/html_text.h"

namespace qkv::labs {

const char* const kReportStyle = R"(
:root { color-scheme: light; --ink: #1d2129; --soft: #5b6472; --page: #ffffff; --box: #f4f5f7; --line: #dfe2e7;
  --good: #1a7f4b; --bad: #b3261e; --mark: #2c6cb8; }
@media (prefers-color-scheme: dark) { :root:not([data-theme="light"]) { color-scheme: dark; --ink: #e6e8ec;
  --soft: #a0a7b3; --page: #15181d; --box: #1f242c; --line: #333a45; --good: #5cc98e; --bad: #ff8a80;
  --mark: #7fb2ef; } }
:root[data-theme="dark"] { color-scheme: dark; --ink: #e6e8ec; --soft: #a0a7b3; --page: #15181d; --box: #1f242c;
  --line: #333a45; --good: #5cc98e; --bad: #ff8a80; --mark: #7fb2ef; }
html[data-lang="en"] .zh, html[data-lang="zh"] .en { display: none; }
* { box-sizing: border-box; } html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.6 system-ui, "Noto Sans",
  "Noto Sans CJK SC", sans-serif; }
.layout { display: grid; grid-template-columns: 19rem minmax(0, 52rem); gap: 0 3rem; max-width: 78rem; margin: 0 auto; }
main { padding: 2rem 1.25rem 5rem; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 0 .5rem 2rem 1.25rem; font-size: .88rem;
  line-height: 1.4; border-right: 1px solid var(--line); }
nav a { color: inherit; text-decoration: none; } nav a:hover { text-decoration: underline; }
nav summary { padding: .2rem 0; } nav ul { list-style: none; margin: 0 0 .4rem; padding-left: 1.1rem; }
nav li { padding: .12rem 0; } nav li a, nav .alone { color: var(--soft); } nav .alone { display: block;
  padding: .2rem 0 .2rem 1.1rem; color: var(--ink); }
nav details.here > summary a { color: var(--mark); font-weight: 600; }
.buttons { display: flex; flex-wrap: wrap; gap: .35rem; margin-bottom: .3rem; padding: 1rem 0 .5rem; position: sticky;
  top: 0; background: var(--page); }
button { font: inherit; font-size: .85rem; padding: .15rem .6rem; color: var(--ink); background: var(--box);
  border: 1px solid var(--line); border-radius: 5px; cursor: pointer; }
button:focus-visible, a:focus-visible, summary:focus-visible { outline: 2px solid var(--mark); }
h1 { font-size: 1.9rem; margin: 0 0 .25rem; }
h2 { margin-top: 3.5rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
h3 { margin-top: 2.2rem; } .soft { color: var(--soft); } main a { color: var(--mark); }
h3 .time { font-size: .8rem; font-weight: 400; color: var(--soft); margin-left: .5rem; }
pre { background: var(--box); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; font-size: .88rem;
  line-height: 1.45; }
code { background: var(--box); padding: .1em .3em; border-radius: 4px; font-size: .92em; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top;
  font-variant-numeric: tabular-nums; }
.wide code { overflow-wrap: break-word; } .wide td { font-size: .9rem; } .wide td:first-child { white-space: nowrap; }
figure { margin: 1.5rem 0; }
figure > div { width: fit-content; max-width: 100%; margin: 0 auto; background: #fff; border: 1px solid var(--line);
  border-radius: 6px; padding: .5rem; overflow-x: auto; }
figure svg { max-width: 100%; min-width: var(--least); height: auto; display: block; margin: 0 auto; }
figure svg a:hover rect { stroke-width: 2.5; }
figcaption { color: var(--soft); font-size: .92rem; margin: .4rem auto 0; text-align: center; max-width: 44rem;
  text-wrap: balance; }
.explore { font-size: .85rem; }
.number { text-align: right; } td.number { white-space: nowrap; }
.claim { padding: .35rem .8rem; border-left: 3px solid var(--good); background: var(--box); margin: .5rem 0;
  border-radius: 0 6px 6px 0; }
.fact { padding: .2rem .8rem; border-left: 3px solid var(--line); color: var(--soft); margin: .5rem 0; }
.claim.bad, .failed { border-color: var(--bad); } .claim b { color: var(--good); } .claim.bad b { color: var(--bad); }
.failed { border-left: 3px solid var(--bad); background: var(--box); padding: .5rem .8rem; }
.question { font-style: italic; margin-bottom: .4rem; } :lang(zh-CN).question, .question .zh { font-style: normal; }
details.answer > summary { color: var(--mark); cursor: pointer; width: fit-content; }
.short { border-left: 3px solid var(--mark); padding: .2rem .8rem; background: var(--box); }
.formula { overflow-x: auto; overflow-y: hidden; }
math { font-size: 1.08em; font-family: "STIX Two Math", "Latin Modern Math", "Cambria Math", "DejaVu Math TeX Gyre",
  "Noto Sans Math", math; }
@media (max-width: 60rem) { .layout { display: block; } nav { position: sticky; height: auto; max-height: 7.5rem;
  background: var(--page); border-right: 0; border-bottom: 1px solid var(--line); z-index: 1; padding-bottom: .5rem; }
  nav:focus-within { max-height: 60vh; } html { scroll-padding-top: 8.5rem; } }
@media print { :root, :root[data-theme], :root:not([data-theme="light"]) { color-scheme: light; --ink: #000;
  --soft: #444; --page: #fff; --box: #f4f5f7; --line: #ccc; --good: #1a7f4b; --bad: #b3261e; --mark: #1d2129; }
  .layout { display: block; max-width: none; } nav { display: none; } body { font-size: 10.5pt; }
  main { padding: 0; } h2 { break-before: page; } h2, h3 { break-after: avoid; }
  main > section:first-of-type h2 { break-before: auto; margin-top: 1.5rem; }
  figure, .claim, tr, .question { break-inside: avoid; } .explore { display: none; }
  pre, table, .formula, figure > div { overflow: visible; } pre { white-space: pre-wrap; }
  table { display: table; } details.answer[open] > summary { display: none; } }
)";

const char* const kReportScript = R"js(
const root = document.documentElement;
document.querySelectorAll("[data-language]").forEach(button => button.onclick = () => {
  const zh = button.dataset.language === "zh";
  root.dataset.lang = button.dataset.language;
  root.lang = zh ? "zh-CN" : "en";
  document.title = zh ? root.dataset.titleZh : root.dataset.titleEn;
});
document.getElementById("theme").onclick = () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
};
const answers = [...document.querySelectorAll("details.answer")];
document.getElementById("fold").onclick = () => {
  const open = !answers.some(answer => answer.open);
  answers.forEach(answer => { answer.open = open; });
};
const reveal = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let at = target.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", reveal);
const entries = new Map([...document.querySelectorAll("nav details")].map(entry => [entry.dataset.lab, entry]));
const nav = document.querySelector("nav"), buttons = nav.querySelector(".buttons");
const watch = new IntersectionObserver(seen => {
  for (const one of seen) {
    const entry = entries.get(one.target.id);
    if (!entry) continue;
    entry.classList.toggle("here", one.isIntersecting);
    entry.open = one.isIntersecting;
  }
  const here = nav.querySelector(".here");
  if (!here) return;
  const above = here.offsetTop - buttons.offsetHeight, below = here.offsetTop + here.offsetHeight - nav.clientHeight;
  if (nav.scrollTop > above || nav.scrollTop < below) nav.scrollTop = Math.min(above, Math.max(below, nav.scrollTop));
}, { rootMargin: "-30% 0px -60% 0px" });
document.querySelectorAll("main > section").forEach(section => watch.observe(section));
reveal();
nav.addEventListener("click", event => {  // on a phone the contents shrink again, unless a key pressed the button
  const name = event.target.tagName;
  if (name === "A" || (name === "BUTTON" && event.detail)) document.activeElement.blur();
});
)js";

}  // namespace qkv::labs
