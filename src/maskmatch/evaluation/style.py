"""The style sheet of report pages, with a light and a dark colour scheme."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f5f6f4; --card: #ffffff; --ink: #1d2226; --quiet: #5f6870; --line: #e2e5e3;
  --right: #2166ac; --wrong: #c4561b; --missed: #b3bac1; --on-strong: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #121518; --card: #1b2024; --ink: #e7eaec; --quiet: #9ba5ad; --line: #30373d;
    --right: #6cb0f0; --wrong: #f2965c; --missed: #5d6770; --on-strong: #10151a;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2rem 1.25rem; max-width: 76rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
h1 { margin: 0; font-size: 1.6rem; line-height: 1.2; }
h2 { margin: 0 0 .3rem; font-size: 1.1rem; }
p { margin: 0 0 .8rem; max-width: 46rem; }
.quiet, footer { color: var(--quiet); }
header { margin-bottom: 1.25rem; }
.tiles { display: grid; gap: .75rem; margin: 0;
  grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); }
.tile, section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.tile { padding: .8rem 1rem; }
.tile dt { color: var(--quiet); font-size: .85rem; }
.tile dd { margin: 0; }
.tile .figure { font-size: 1.7rem; font-weight: 650; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tile .meaning { display: block; color: var(--quiet); font-size: .78rem; line-height: 1.35; }
.notes { margin: .9rem 0 0; padding: .7rem 1rem .7rem 2rem; border-left: 4px solid var(--wrong);
  background: var(--card); border-radius: 4px 10px 10px 4px; overflow-wrap: anywhere; }
section { margin-top: 1rem; padding: 1.1rem 1.25rem; min-width: 0; }
.scroll { overflow: auto; max-width: 100%; }
.tall { max-height: 44rem; }
.columns { display: flex; flex-wrap: wrap; gap: 0 1rem; }
.columns > section { flex: 1 1 auto; max-width: 100%; }
.columns p { width: 0; min-width: min(100%, 46rem); }  /* the chart determines the width of a column */
summary { cursor: pointer; color: var(--quiet); margin-bottom: .4rem; }
.beside { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; align-items: center; }
.beside > * { min-width: 0; max-width: 100%; }
svg { display: block; }
svg.fits { max-width: 100%; height: auto; }
svg text { fill: var(--ink); }
svg text:not(.number) { font-size: 12px; }
svg .axis, svg .tick { fill: var(--quiet); }
svg .number { text-anchor: middle; font-variant-numeric: tabular-nums; pointer-events: none; }
svg .strong { fill: var(--on-strong); }
svg .grid { stroke: var(--line); fill: none; }
svg .frame { stroke: var(--quiet); fill: none; pointer-events: none; }
svg .diagonal { stroke: var(--quiet); stroke-dasharray: 5 5; }
svg .curve { stroke: var(--right); stroke-width: 2; fill: none; }
svg .point, svg .count, svg .right { fill: var(--right); }
svg .point { stroke: var(--card); stroke-width: 1.5; }
svg .count { fill-opacity: .55; }
svg .wrong { fill: var(--wrong); }
svg .missed { fill: var(--missed); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
table.wide { width: 100%; min-width: 34rem; }
th, td { padding: .32rem .7rem; border-bottom: 1px solid var(--line);
  text-align: right; white-space: nowrap; }
th { position: sticky; top: 0; background: var(--card);
  color: var(--quiet); font-weight: 550; font-size: .85rem; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
tbody tr:last-child td { border-bottom: 0; }
td.bar { width: 32%; min-width: 9rem; }
td.bar > span { display: flex; align-items: center; gap: .7rem; }
td.bar i { flex: 1; height: .55rem; border-radius: 3px; background: var(--line); overflow: hidden; }
td.bar b { display: block; height: 100%; background: var(--right); }
.badge { margin-left: .5rem; padding: .05rem .4rem; border: 1px solid var(--wrong); border-radius: 4px;
  color: var(--wrong); font-size: .75rem; }
.mistakes { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr));
  gap: 1.1rem 2rem; margin: .6rem 0 0; padding: 0; list-style: none; }
.mistakes li { min-width: 0; overflow-wrap: anywhere; }
.mistakes .count { display: inline-block; min-width: 2rem; margin-right: .5rem; padding: 0 .4rem;
  background: var(--wrong); color: var(--on-strong); border-radius: 4px; text-align: center;
  font-weight: 600; font-size: .85rem; }
.mistakes .pair { font-weight: 600; }
.mistakes q { quotes: none; }
.mistakes div { margin-top: .25rem; font-size: .9rem; }
footer { margin-top: 1.25rem; font-size: .82rem; }
@media (max-width: 40rem) {
  body { padding: 1.1rem .7rem; }
  section { padding: .9rem .8rem; }
  .tiles { grid-template-columns: 1fr 1fr; gap: .5rem; }
  .tile:last-child:nth-child(odd) { grid-column: span 2; }
}
@media print { .tall { max-height: none; } body { background: none; } }
"""
