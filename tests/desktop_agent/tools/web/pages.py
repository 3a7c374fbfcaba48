# ruff: noqa: E501 - pages as their makers write them
"""Pages in the styles of several makers of documentation, cut down to what is special in each."""

SPHINX = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Streams — Python documentation</title>
<style>p {color: red}</style></head><body>
<div class="related" role="navigation"><h3>Navigation</h3><ul><li><a href="../genindex.html">index</a></li></ul></div>
<div class="document"><div class="bodywrapper"><div class="body" role="main"><section id="streams">
<h1>Streams<a class="headerlink" href="#streams" title="Link to this heading">¶</a></h1>
<p>Streams work
with   connections.</p>
<div class="highlight-python3 notranslate"><div class="highlight"><pre><span></span><span class="kn">import</span> \
<span class="nn">asyncio</span>

<span class="k">async</span> <span class="k">def</span> <span class="nf">echo</span><span class="p">():</span>
    <span class="k">if</span> <span class="n">a</span> <span class="o">&lt;</span> <span class="n">b</span><span class="p">:</span>
        <span class="k">pass</span>
</pre></div></div>
<dl class="py function"><dt class="sig sig-object py" id="x"><em class="property"><span class="pre">async</span> </em>\
<span class="sig-prename"><span class="pre">asyncio.</span></span><span class="sig-name"><span class="pre">open_connection</span>\
</span><span class="sig-paren">(</span><em class="sig-param"><span class="n">host</span>=None</em><span class="sig-paren">)</span>\
<a class="headerlink" href="#x">¶</a></dt>
<dd><p>Return a pair of <code class="docutils literal"><span class="pre">(reader,</span> <span class="pre">writer)</span></code>.</p>
<p>The <em>limit</em> is <strong>required</strong>; see <a class="reference" href="#y"><code>StreamReader</code></a>.</p>
<div class="admonition note"><p class="admonition-title">Note</p><p>It moves.</p></div></dd></dl>
<table class="docutils"><thead><tr><th><p>Event</p></th><th><p>Meaning</p></th></tr></thead><tbody>
<tr><td><p>0</p></td><td><p>Nothing | pipes</p></td></tr><tr><td><p>1</p></td><td><a href="a.html">this</a></td></tr></tbody></table>
<ol class="arabic"><li><p>first</p><ul><li><p>inner</p></li><li><p>more</p></li></ul></li><li><p>second</p></li></ol>
</section></div></div><div class="sphinxsidebar" role="navigation"><h4>Previous topic</h4></div></div>
<div class="footer" role="contentinfo">&copy; Copyright 2024.</div></body></html>"""

SPHINX_READ = """\
# Streams

Streams work with connections.

```python3
import asyncio

async def echo():
    if a < b:
        pass
```

`async asyncio.open_connection(host=None)`
:   Return a pair of `(reader, writer)`.

    The *limit* is **required**; see `StreamReader`.

    **Note**

    It moves.

| Event | Meaning |
| --- | --- |
| 0 | Nothing \\| pipes |
| 1 | [this](https://docs.example.org/lib/a.html) |

1. first

   - inner
   - more
2. second
"""

MDN = """<!doctype html><html><head><title>map() | MDN</title></head><body>
<ul class="a11y-nav"><li><a href="#content">Skip to main content</a></li></ul>
<header><nav><a href="/">MDN</a><button>Menu</button></nav></header>
<aside class="sidebar"><ol><li><a href="/a">Array</a></li></ol></aside>
<main id="content"><article><h1>map()</h1><p>The <strong><code>map()</code></strong> method of
<a href="/docs/Array"><code>Array</code></a>.</p><section><h2 id="syntax"><a href="#syntax">Syntax</a></h2>
<div class="code-example"><p class="example-header"><span>js</span></p><pre class="brush: js notranslate"><code>map(f)
map(f, self)
</code></pre></div><dl><dt id="f"><a href="#f"><code>f</code></a></dt><dd><p>Called with:</p><dl><dt><code>element</code></dt>
<dd><p>The element.</p></dd></dl></dd><dt><code>self</code> <span>Optional</span></dt><dd><p>A value.</p></dd></dl></section>
</article></main><footer><p>Your blueprint.</p></footer></body></html>"""

MDN_READ = """\
# map()

The **`map()`** method of [`Array`](https://docs.example.org/docs/Array).

## Syntax

```js
map(f)
map(f, self)
```

`f`
:   Called with:

    `element`
    :   The element.

`self` Optional
:   A value.
"""

MKDOCS = """<!doctype html><html class="no-js"><head><title>First Steps</title></head><body>
<header class="md-header"><nav><div>FastAPI</div></nav></header><main class="md-main"><div class="md-sidebar"><nav>
<ul><li><a href="..">Features</a></li></ul></nav></div><article class="md-content__inner"><h1>First Steps<a class="headerlink"
href="#first-steps">&para;</a></h1><div class="highlight"><table class="highlighttable"><tr><td class="linenos"><div
class="linenodiv"><pre><span></span>1
2
3</pre></div></td><td class="code"><div><pre><span></span><code><span class="kn">from</span> fastapi <span>import</span> FastAPI

app = FastAPI()
</code></pre></div></td></tr></table></div><details><summary>Tip</summary><p>Folded but useful.</p></details>
<ul><li>one <a href="../b/">link</a></li><li>two<ul><li>inner</li></ul></li></ul></article></main>
<footer class="md-footer">Made with Material</footer></body></html>"""

MKDOCS_READ = """\
# First Steps

```
from fastapi import FastAPI

app = FastAPI()
```

**Tip**

Folded but useful.

- one [link](https://docs.example.org/b/)
- two
  - inner
"""

RUSTDOC = """<!DOCTYPE html><html><head><title>Vec in std::vec - Rust</title></head><body class="rustdoc struct">
<nav class="sidebar"><h2><a href="../index.html">std</a></h2></nav><main><section id="main-content" class="content">
<h1>Struct <span>Vec</span><button>Copy item path</button></h1><pre class="rust item-decl"><code>pub struct Vec&lt;T, A = \
<a href="g.html">Global</a>&gt;<div class="where">where
    A: Allocator,</div>{ <span>/* private */</span> }</code></pre><details open><summary class="hideme"><span>Expand description</span>
</summary><div class="docblock"><p>Growable, <code>Vec&lt;T&gt;</code>.</p></div></details>
<details open><summary><section id="new"><h4 class="code-header">pub fn <a href="#new">new</a>() -&gt; <a
href="v.html">Vec</a>&lt;T&gt;</h4></section></summary><div class="docblock"><p>Constructs.</p></div></details>
</section></main></body></html>"""

RUSTDOC_READ = """\
# Struct Vec

```
pub struct Vec<T, A = Global>
where
    A: Allocator,{ /* private */ }
```

Growable, `Vec<T>`.

#### `pub fn new() -> Vec<T>`

Constructs.
"""

GITHUB = """<!DOCTYPE html><html><head><title>foo/bar</title></head><body><div><a href="#start">Skip to content</a>
<header role="banner"><a href="/login">Sign in</a></header></div><main><article class="markdown-body"><div
class="markdown-heading"><h1>bar</h1><a class="anchor" href="#bar"><svg><path d="M0"/><title>Permalink</title></svg></a></div>
<div class="highlight highlight-source-shell"><pre>pip install bar
bar <span class="pl-k">--</span>help</pre><div><clipboard-copy value="x"></clipboard-copy></div></div>
<ul class="contains-task-list"><li><input type="checkbox" checked disabled> done</li><li><input type="checkbox"> open</li></ul>
<blockquote><p>quoted</p><p>twice</p></blockquote><p><img src="a.png" alt="A diagram"> <img src="b.png"></p></article></main>
<footer>© 2026</footer></body></html>"""

GITHUB_READ = """\
# bar

```shell
pip install bar
bar --help
```

- [x] done
- [ ] open

> quoted
>
> twice

![A diagram](https://docs.example.org/lib/a.png)
"""

OLD = """<HTML><HEAD><TITLE>Make</TITLE></HEAD><BODY BGCOLOR=#ffffff><TABLE WIDTH=100%><TR><TD VALIGN=top>
<A HREF="index.html">[Contents]</A></TABLE><HR><H2>4.2 Rules</H2><P>A rule looks like this:<PRE>
<VAR>targets</VAR> : <VAR>prerequisites</VAR>
        <VAR>recipe</VAR>
</PRE>The <CODE>targets</CODE> are<BR>file names.<DL><DT>-f <DD>file<DT>-k<DD>keep going</DL>
<UL><LI>one<LI>two</UL><TABLE BORDER=1><TR><TH>Flag<TH>Use<TR><TD>a<TD>b</TABLE><P>End</BODY></HTML>"""

OLD_READ = """\
[[Contents]](https://docs.example.org/lib/index.html)

---

## 4.2 Rules

A rule looks like this:

```
targets : prerequisites
        recipe
```

The `targets` are
file names.

-f
:   file

-k
:   keep going

- one
- two

| Flag | Use |
| --- | --- |
| a | b |

End
"""

STYLES = {
    "sphinx": (SPHINX, SPHINX_READ),
    "mdn": (MDN, MDN_READ),
    "mkdocs": (MKDOCS, MKDOCS_READ),
    "rustdoc": (RUSTDOC, RUSTDOC_READ),
    "github": (GITHUB, GITHUB_READ),
    "old": (OLD, OLD_READ),
}
