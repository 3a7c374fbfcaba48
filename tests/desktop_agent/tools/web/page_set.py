# ruff: noqa: E501 - pages as their makers write them
"""Whole pages as they are found on the web: which text a reader needs, and which is clutter."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """`keeps` must stand in the text as it is here, line ends and all, in this order; `drops` must not."""

    html: str
    keeps: tuple[str, ...]
    drops: tuple[str, ...]


SPHINX = Page(
    """<!DOCTYPE html><html lang="en" data-content_root="../"><head><meta charset="utf-8"/><title>Tutorial &#8212; Lib 3.2</title>
<link rel="stylesheet" href="../_static/pygments.css"/><script src="../_static/doctools.js"></script></head><body>
<a id="pst-skip-link" class="skip-link" href="#main-content">Skip to main content</a><div class="announcement"><aside class="announcement-content">Version 4 is out!</aside></div>
<div class="page"><aside class="sidebar-drawer"><div class="sidebar-tree"><ul><li class="toctree-l1"><a href="../install.html">Installation</a></li>
<li class="toctree-l1 current"><a class="current reference internal" href="#">Tutorial</a></li></ul></div></aside>
<div class="main"><div class="content"><div class="article-container"><div class="content-icon-container"><button>Toggle theme</button></div>
<article role="main" id="furo-main-content"><section id="tutorial"><h1>Tutorial<a class="headerlink" href="#tutorial" title="Link to this heading">¶</a></h1>
<p>See <a class="reference internal" href="../api.html#lib.open"><code class="xref py py-func docutils literal notranslate"><span class="pre">lib.open()</span></code></a> and the
<a class="reference external" href="https://peps.python.org/pep-0008/">style guide</a>.</p>
<div class="literal-block-wrapper docutils container" id="id1"><div class="code-block-caption"><span class="caption-text">app.py</span><a class="headerlink" href="#id1" title="Link to this code">¶</a></div>
<div class="highlight-python notranslate"><div class="highlight"><table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre><span class="normal">1</span>
<span class="normal">2</span>
<span class="normal">3</span>
<span class="normal">4</span></pre></div></td><td class="code"><div><pre><span></span><span class="kn">import</span><span class="w"> </span><span class="nn">lib</span>

<span class="k">with</span> <span class="n">lib</span><span class="o">.</span><span class="n">open</span><span class="p">(</span><span class="s2">&quot;a&quot;</span><span class="p">)</span> <span class="k">as</span> <span class="n">it</span><span class="p">:</span>
    <span class="nb">print</span><span class="p">(</span><span class="n">it</span><span class="p">)</span>
</pre></div></td></tr></table></div></div></div>
<div class="highlight-console notranslate"><div class="highlight"><pre><span></span><span class="linenos">1</span><span class="gp">$ </span>pip<span class="w"> </span>install<span class="w"> </span>lib
<span class="linenos">2</span><span class="go">done</span>
</pre></div></div>
<div class="versionadded"><p><span class="versionmodified added">Added in version 3.1.</span></p></div>
<div class="admonition warning"><p class="admonition-title">Warning</p><p>Close it <em>always</em>.</p></div>
<section id="options"><h2>Options<a class="headerlink" href="#options">¶</a></h2><div class="table-wrapper docutils container"><table class="docutils align-default">
<thead><tr class="row-odd"><th class="head"><p>Name</p></th><th class="head"><p>Default</p></th><th class="head"><p>Meaning</p></th></tr></thead>
<tbody><tr class="row-even"><td><p><code class="docutils literal notranslate"><span class="pre">retries</span></code></p></td><td><p>3</p></td><td><p>How often; see <a href="#x">below</a>.</p></td></tr>
<tr class="row-odd"><td><p><code class="docutils literal notranslate"><span class="pre">mode</span></code></p></td><td><p>r|w</p></td><td><p>Reading or writing.</p></td></tr></tbody></table></div></section></section></article></div>
<footer><div class="related-pages"><a class="next-page" href="next.html"><div class="page-info"><span>Next</span><div class="title">Reference</div></div></a></div>
<div class="bottom-of-page"><div class="copyright">Copyright &#169; 2026</div>Made with <a href="https://www.sphinx-doc.org/">Sphinx</a></div></footer></div>
<aside class="toc-drawer no-toc"><ul><li><a class="reference internal" href="#options">Options</a></li></ul></aside></div></div></body></html>""",
    (
        "# Tutorial\n",
        "[`lib.open()`](https://example.org/api.html#lib.open)",
        "[style guide](https://peps.python.org/pep-0008/)",
        "app.py",
        '```python\nimport lib\n\nwith lib.open("a") as it:\n    print(it)\n```',
        "```console\n$ pip install lib\ndone\n```",
        "Added in version 3.1.",
        "**Warning**",
        "Close it *always*.",
        "## Options\n",
        "| Name | Default | Meaning |\n| --- | --- | --- |\n| `retries` | 3 | How often; see below. |\n| `mode` | r\\|w | Reading or writing. |",
    ),
    ("¶", "Toggle theme", "Installation", "Copyright", "Sphinx", "Skip to", "Reference"),
)

MDN = Page(
    """<!doctype html><html lang="en-US"><head><title>Array.prototype.at() - JavaScript | MDN</title><script type="application/ld+json">{"@type":"WebPage"}</script></head><body>
<ul id="nav-access" class="a11y-nav"><li><a href="#content">Skip to main content</a></li><li><a href="#top-nav-search-input">Skip to search</a></li></ul>
<div class="page-layout"><header class="page-layout__header"><nav class="navigation"><div class="menu"><button>HTML</button><ul><li><a href="/en-US/docs/Web/HTML">HTML: Markup language</a></li></ul></div></nav></header>
<nav class="breadcrumbs-bar"><ol><li><a href="/en-US/docs/Web">Web</a></li></ol></nav>
<main id="content" class="layout__content"><div class="reference-layout"><div class="reference-layout__header"><h1>Array.prototype.at()</h1>
<details class="baseline-indicator high"><summary><span class="icon" aria-label="Baseline Check" role="img"></span><span class="status">Baseline <span>Widely available</span></span></summary><div class="extra"><p>It works across browsers since March 2022.</p></div></details></div>
<div class="reference-layout__body"><p>The <strong><code>at()</code></strong> method of <a href="/en-US/docs/Web/JavaScript/Reference/Global_Objects/Array"><code>Array</code></a> takes an integer.</p>
<section aria-labelledby="try_it"><h2 id="try_it"><a href="#try_it">Try it</a></h2><interactive-example name="at"><div class="code-example"><div class="example-header"><span class="language-name">js</span><button>Copy</button></div>
<pre class="brush: js notranslate"><code>const array = [5, 12];

console.log(`An index of ${-1}`);
// Expected output: "12"
</code></pre></div></interactive-example></section>
<section><h2 id="parameters"><a href="#parameters">Parameters</a></h2><dl><dt id="index"><a href="#index"><code>index</code></a></dt><dd><p>Counts back if negative: <code>-array.length &lt;= index &lt; 0</code>.</p></dd></dl>
<div class="notecard note"><p><strong>Note:</strong> It is generic.</p></div></section>
<section><h2 id="specifications">Specifications</h2><figure class="table-container"><table class="standard-table"><thead><tr><th scope="col">Specification</th></tr></thead>
<tbody><tr><td><a href="https://tc39.es/ecma262/#sec-array.prototype.at">ECMAScript<!-- --> <br/><small># sec-array.prototype.at</small></a></td></tr></tbody></table></figure></section></div>
<aside class="article-footer"><div><p>Help improve MDN</p><a href="/contribute">Learn how to contribute</a></div></aside></div></main>
<footer class="page-footer"><p>Your blueprint for a better internet.</p></footer></div></body></html>""",
    (
        "# Array.prototype.at()\n",
        "Widely available",
        "The **`at()`** method of [`Array`](https://example.org/en-US/docs/Web/JavaScript/Reference/Global_Objects/Array) takes an integer.",
        '```js\nconst array = [5, 12];\n\nconsole.log(`An index of ${-1}`);\n// Expected output: "12"\n```',
        "## Parameters\n",
        "`index`",
        "`-array.length <= index < 0`",
        "**Note:** It is generic.",
        "| Specification |\n| --- |\n",
        "(https://tc39.es/ecma262/#sec-array.prototype.at) |",
    ),
    ("Skip to", "Markup language", "Copy", "blueprint", "WebPage"),
)

README = Page(
    """<!DOCTYPE html><html><head><title>GitHub - o/tool: Does it</title></head><body class="logged-out env-production"><div class="logged-out"><a href="#start-of-content" class="px-2 show-on-focus js-skip-to-content">Skip to content</a>
<header class="HeaderMktg header-logged-out" role="banner"><nav aria-label="Global"><ul><li><a href="/features">Features</a></li></ul></nav><a href="/login" class="HeaderMenu-link">Sign in</a></header></div>
<main id="js-repo-pjax-container"><div class="Layout"><table aria-labelledby="folders-and-files"><thead class="sr-only"><tr><th>Name</th><th>Last commit message</th></tr></thead><tbody><tr><td><a href="/o/tool/tree/main/src">src</a></td><td>Fix it</td></tr></tbody></table>
<article class="markdown-body entry-content container-lg" itemprop="text"><div class="markdown-heading" dir="auto"><h1 class="heading-element" dir="auto">tool</h1><a id="user-content-tool" class="anchor" aria-label="Permalink: tool" href="#tool"><svg class="octicon octicon-link" aria-hidden="true"><path d="m7"></path></svg></a></div>
<p dir="auto"><a href="https://ci.example.com/o/tool"><img src="https://camo.example.com/b.svg" alt="Build status" data-canonical-src="x" style="max-width: 100%;"></a>
Fast <g-emoji class="g-emoji" alias="rocket">🚀</g-emoji> and small.</p>
<div class="highlight highlight-source-shell notranslate position-relative overflow-auto" dir="auto" data-snippet-clipboard-copy-content="x"><pre>curl -L example.com <span class="pl-k">|</span> sh
tool --in a_b_c.txt \\
     --out <span class="pl-smi">$HOME</span>/*.md</pre></div>
<div class="snippet-clipboard-content"><pre class="notranslate"><code>plain
  text
</code></pre></div>
<ul class="contains-task-list"><li class="task-list-item"><input type="checkbox" class="task-list-item-checkbox" disabled checked> Linux</li><li class="task-list-item"><input type="checkbox" disabled> Windows</li></ul>
<div class="markdown-alert markdown-alert-note"><p class="markdown-alert-title">Note</p><p>Use <kbd>Ctrl</kbd>+<kbd>C</kbd> to end.</p></div>
<markdown-accessiblity-table><table><thead><tr><th align="left">Flag</th><th align="right">Cost</th></tr></thead><tbody><tr><td align="left"><code>--a|b</code></td><td align="right">1 ms</td></tr></tbody></table></markdown-accessiblity-table>
<details><summary>More</summary><ol dir="auto"><li>one<ul><li>inner</li></ul></li><li>two <a href="docs/two.md">docs</a></li></ol></details>
<p>Twice<sup><a href="#user-content-fn-1" id="user-content-fnref-1">1</a></sup>.</p></article></div></main><footer class="footer" role="contentinfo"><p>© 2026 GitHub, Inc.</p></footer></body></html>""",
    (
        "# tool\n",
        "Build status",
        "Fast 🚀 and small.",
        "```shell\ncurl -L example.com | sh\ntool --in a_b_c.txt \\\n     --out $HOME/*.md\n```",
        "```\nplain\n  text\n```",
        "- [x] Linux\n- [ ] Windows",
        "Use `Ctrl`+`C` to end.",
        "| Flag | Cost |\n| --- | --- |\n| `--a\\|b` | 1 ms |",
        "More",
        "1. one\n   - inner\n2. two [docs](https://example.org/lib/docs/two.md)",
        "Twice",
    ),
    ("Skip to", "Sign in", "Features", "© 2026", "Permalink"),
)

NEWS = Page(
    """<!DOCTYPE html><html lang="en"><head><title>River rises | The Post</title><meta property="og:title" content="River rises"></head><body>
<div id="onetrust-consent-sdk"><div role="dialog">We value your privacy <button>Accept all</button></div></div>
<header class="site-header"><a href="/">The Post</a><nav class="main-nav"><ul><li><a href="/world">World</a></li><li><a href="/sport">Sport</a></li></ul></nav></header>
<div class="grid"><main><article class="story"><header><h1>River rises after a week of rain</h1><p class="byline">By <a href="/by/ann">Ann Lee</a></p><time datetime="2026-03-01T08:00">1 March 2026</time></header>
<ul class="share social"><li><a href="https://x.example/share">Share</a></li><li><a href="mailto:?subject=x">Email</a></li></ul>
<figure><img src="/img/river.jpg" alt="The river at the old bridge" loading="lazy"><figcaption>The river on Sunday. <span class="credit">Photo: J. Roe</span></figcaption></figure>
<p>The river rose by <b>two metres</b> on Sunday, the council said.</p><p>“We were lucky,” said the mayor&nbsp;— and went home.</p>
<aside class="related"><h3>Read more</h3><ul><li><a href="/a">Ten bridges you must see</a></li><li><a href="/b">Why it rains</a></li></ul></aside>
<h2>What comes next</h2><blockquote><p>More rain.</p><cite>The weather office</cite></blockquote><p>Read <a href="../live?id=1&amp;x=2">our live page</a>.</p></article></main>
<aside class="sidebar"><h2>Most read</h2><ol><li><a href="/1">A cat was found</a></li><li><a href="/2">A dog was lost</a></li></ol></aside></div>
<footer class="site-footer"><ul><li><a href="/terms">Terms</a></li></ul><p>© The Post</p></footer><noscript><img src="https://count.example/p.gif" alt=""></noscript></body></html>""",
    (
        "# River rises after a week of rain\n",
        "By [Ann Lee](https://example.org/by/ann)",
        "1 March 2026",
        "The river at the old bridge",
        "The river on Sunday. Photo: J. Roe",
        "rose by **two metres** on Sunday",
        "“We were lucky,” said the mayor\xa0— and went home.",
        "## What comes next\n",
        "> More rain.",
        "[our live page](https://example.org/live?id=1&x=2)",
    ),
    ("Accept all", "Sport", "A cat was found", "Ten bridges", "Terms", "count.example", "Share"),
)

WIKI = Page(
    """<!DOCTYPE html><html class="client-nojs"><head><title>Lake Elm - Wikipedia</title></head><body class="mediawiki ltr"><a class="mw-jump-link" href="#bodyContent">Jump to content</a>
<div class="vector-header-container"><header class="vector-header mw-header"><form role="search"><input type="search"><button>Search</button></form></header></div>
<div class="mw-page-container"><nav id="mw-panel-toc" role="navigation"><h2>Contents</h2><ul><li><a href="#History">1 History</a></li></ul></nav>
<main id="content" class="mw-body"><header class="mw-body-header"><h1 id="firstHeading"><span class="mw-page-title-main">Lake Elm</span></h1></header>
<div id="bodyContent"><div id="siteSub" class="noprint">From Wikipedia, the free encyclopedia</div><div id="mw-content-text" class="mw-body-content"><div class="mw-content-ltr mw-parser-output" lang="en" dir="ltr">
<table class="infobox vcard"><tbody><tr><th colspan="2" class="infobox-above">Lake Elm</th></tr><tr><td colspan="2" class="infobox-image"><a href="/wiki/File:E.jpg"><img alt="" src="//up.example/E.jpg"></a></td></tr>
<tr><th scope="row">Surface area</th><td>12.5&#160;km<sup>2</sup> (4.8&#160;sq&#160;mi)</td></tr><tr><th scope="row">Max. depth</th><td>31&#160;m</td></tr></tbody></table>
<p><b>Lake Elm</b> is a <a href="/wiki/Lake" title="Lake">lake</a>.<sup id="cite_ref-1" class="reference"><a href="#cite_note-1"><span class="cite-bracket">[</span>1<span class="cite-bracket">]</span></a></sup></p>
<div class="mw-heading mw-heading2"><h2 id="History">History</h2><span class="mw-editsection"><span class="mw-editsection-bracket">[</span><a href="/w/index.php?action=edit">edit</a><span>]</span></span></div>
<p>Its area is <span class="mwe-math-element"><span class="mwe-math-mathml-inline" style="display: inline;"><math alttext="{\\displaystyle A=\\pi r^{2}}"><semantics><mrow><mi>A</mi><mo>=</mo></mrow><annotation encoding="application/x-tex">{\\displaystyle A=\\pi r^{2}}</annotation></semantics></math></span><img src="https://m.example/x.svg" aria-hidden="true" alt="{\\displaystyle A=\\pi r^{2}}"></span>.</p>
<table class="wikitable sortable"><caption>Fish by year</caption><tbody><tr><th rowspan="2">Year</th><th colspan="2">Caught</th></tr><tr><th>Pike</th><th>Trout</th></tr>
<tr><td>2024</td><td>10</td><td>20</td></tr><tr><td>2025</td><td style="text-align:right">11<br>(late)</td><td>21<sup class="reference"><a href="#cite_note-2">[2]</a></sup></td></tr></tbody></table>
<style data-mw-deduplicate="T">.x{color:red}</style><div class="reflist"><ol class="references"><li id="cite_note-1"><span class="mw-cite-backlink"><b><a href="#cite_ref-1">^</a></b></span> <span class="reference-text">Roe, J. <i>Lakes</i>.</span></li></ol></div>
<div role="navigation" class="navbox"><table class="nowraplinks"><tbody><tr><th>Lakes of the land</th><td><a href="/wiki/A">Lake Ash</a></td></tr></tbody></table></div></div></div>
<div id="catlinks" class="catlinks"><a href="/wiki/Category:Lakes">Lakes by name</a></div></div></main></div><footer id="footer" class="mw-footer"><ul><li>This page was last edited</li></ul></footer></body></html>""",
    (
        "# Lake Elm\n",
        "| Surface area | 12.5\xa0km<sup>2</sup> (4.8\xa0sq\xa0mi) |\n| Max. depth | 31\xa0m |",
        "**Lake Elm** is a [lake](https://example.org/wiki/Lake).[1]",
        "## History\n",
        "$",
        "\\pi r^{2}",
        "$",
        "Fish by year",
        "| Year | Caught |  |\n| --- | --- | --- |\n|  | Pike | Trout |\n| 2024 | 10 | 20 |\n| 2025 | 11 (late) | 21[2] |",
        "Roe, J. *Lakes*.",
    ),
    ("Jump to", "Contents", "edit", "Lake Ash", "Lakes by name", "last edited", "color:red"),
)

FORUM = Page(
    """<html><head><title>Board - Crash at start</title></head><body><div id="wrap"><div class="navbar"><ul><li><a href="/">Index</a></li><li><a href="/faq">FAQ</a></li></ul></div>
<div id="page-body" role="main"><h2 class="topic-title"><a href="./viewtopic.php?t=7">Crash at start</a></h2><div class="pagination">2 posts <ul><li><a href="?p=1">1</a></li><li><a href="?p=2">2</a></li></ul></div>
<div id="p10" class="post bg2"><div class="inner"><dl class="postprofile"><dt><a href="/u/ann">ann</a></dt><dd><strong>Posts:</strong> 42</dd></dl><div class="postbody"><h3><a href="#p10">Crash at start</a></h3><div class="content">It says:<br><br>
<div class="codebox"><p>Code: <a href="#" onclick="x">Select all</a></p><pre><code>Traceback:
  File "a.py", line 3
    x = [
        ^
SyntaxError</code></pre></div>What now?</div></div></div></div>
<div id="p11" class="post bg1"><div class="inner"><dl class="postprofile"><dt><a href="/u/bob">bob</a></dt></dl><div class="postbody"><div class="content"><blockquote><div><cite>ann wrote:</cite>What now?</div></blockquote>Close the <tt>[</tt>.<br>Then run it again, see <a href="https://docs.example.com/x_y">https://docs.example.com/x_y</a></div><div class="signature">-- bob</div></div></div></div></div>
<div id="page-footer" class="page-footer" role="contentinfo"><a href="/contact">Contact us</a></div></div></body></html>""",
    (
        "Crash at start",
        "ann",
        "It says:",
        '```\nTraceback:\n  File "a.py", line 3\n    x = [\n        ^\nSyntaxError\n```',
        "What now?",
        "bob",
        "> ann wrote:",
        "Close the `[`.\nThen run it again, see <https://docs.example.com/x_y>",
    ),
    ("FAQ", "Contact us"),
)

ANSWERS = Page(
    """<!DOCTYPE html><html><head><title>How to sort - Answers</title></head><body><header class="s-topbar"><a href="#content" class="s-topbar--skip-link">Skip to main content</a><ol role="menubar"><li><a href="/products">Products</a></li></ol></header>
<div class="container"><div id="left-sidebar" role="navigation"><a href="/questions">Questions</a></div><div id="content"><h1><a href="/q/1/how">How to sort?</a></h1>
<div id="mainbar" role="main" aria-label="question and answers"><div class="question"><div class="votecell"><button aria-label="Up vote"></button><div itemprop="upvoteCount">17</div></div><div class="s-prose js-post-body" itemprop="text"><p>I have <code>a*b*c</code> and snake_case_name.</p>
<pre class="lang-py s-code-block"><code class="hljs language-python"><span class="hljs-keyword">def</span> <span class="hljs-title">f</span>(<span class="hljs-params">x</span>):
    <span class="hljs-keyword">return</span> x ** <span class="hljs-number">2</span>
</code></pre></div><div class="post-taglist"><a href="/t/python">python</a></div></div>
<div class="answer accepted"><div class="s-prose js-post-body"><p>Use <a href="/q/2">sorted</a>:</p><ol><li><p>First:</p><pre><code>sorted(x)
</code></pre></li><li><p>Then look.</p></li></ol><hr><p>1. This is no list
* and no <em>emphasis</em>* either</p></div></div></div>
<div id="sidebar" class="show-votes" role="complementary"><h4>Hot questions</h4><ul><li><a href="/h">Why is the sky blue</a></li></ul></div></div></div><footer id="footer"><a href="/legal">Legal</a></footer></body></html>""",
    (
        "`a*b*c` and snake_case_name.",
        "```py\ndef f(x):\n    return x ** 2\n```",
        "Use [sorted](https://example.org/q/2):",
        "1. First:\n",
        "   ```\n   sorted(x)\n   ```",
        "2. Then look.",
        "---",
        "1. This is no list",
    ),
    ("Skip to", "Products", "Legal", "Why is the sky"),
)

BLOGS = Page(
    """<!DOCTYPE html><html><body><article><h1>Ways of makers</h1>
<div class="language-ruby highlighter-rouge"><div class="highlight"><pre class="highlight"><code><table class="rouge-table"><tbody><tr><td class="rouge-gutter gl"><pre class="lineno">1
2
</pre></td><td class="rouge-code"><pre><span class="k">def</span> <span class="nf">a</span>
  <span class="mi">1</span>
</pre></td></tr></tbody></table></code></pre></div></div>
<div class="highlight"><div class="chroma"><table class="lntable"><tr><td class="lntd"><pre tabindex="0" class="chroma"><code><span class="lnt">1
</span><span class="lnt">2
</span></code></pre></td><td class="lntd"><pre tabindex="0" class="chroma"><code class="language-go" data-lang="go"><span class="line"><span class="cl"><span class="kd">func</span> b() {
</span></span><span class="line"><span class="cl">}
</span></span></code></pre></td></tr></table></div></div>
<div class="language-jsx codeBlockContainer_x"><div class="codeBlockContent_x"><pre tabindex="0" class="prism-code language-jsx codeBlock_x"><code class="codeBlockLines_x"><span class="token-line" style="color:#393A34"><span class="token keyword">const</span><span class="token plain"> c = (</span><br></span><span class="token-line" style="color:#393A34"><span class="token plain">  1);</span><br></span></code></pre><div class="buttonGroup_x"><button type="button" aria-label="Copy code to clipboard">Copy</button></div></div></div>
<div class="language-ts vp-adaptive-theme"><button title="Copy Code" class="copy"></button><span class="lang">ts</span><pre class="shiki" tabindex="0"><code><span class="line"><span style="--shiki-light:#D73A49">let</span> d</span>
<span class="line">  = 1</span></code></pre></div>
<figure class="highlight js"><table><tr><td class="gutter"><pre><span class="line">1</span><br><span class="line">2</span><br></pre></td><td class="code"><pre><span class="line"><span class="keyword">var</span> e</span><br><span class="line">  = 2</span><br></pre></td></tr></table></figure>
<pre><div class="token-line">one</div><div class="token-line">  two</div></pre></article></body></html>""",
    (
        "# Ways of makers\n",
        "```ruby\ndef a\n  1\n```",
        "```go\nfunc b() {\n}\n```",
        "```jsx\nconst c = (\n  1);\n```",
        "```ts\nlet d\n  = 1\n```",
        "var e\n  = 2\n```",
        "```\none\n  two\n```",
    ),
    ("Copy", "1\n2"),
)

CJK = Page(
    """<!DOCTYPE html><html lang="ja"><head><title>東京の天気</title></head><body><nav><a href="/">ホーム</a></nav><main><h1>東京の天気</h1><p>今日は<strong>晴れ</strong>です。<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rp>(</rp><rt>じ</rt><rp>)</rp></ruby>も読めます。</p>
<table><tr><th>曜日</th><th>最高</th></tr><tr><td>月曜日</td><td>２５℃</td></tr></table><ul><li>傘は<a href="/かさ?色=赤">不要</a></li></ul><p lang="zh">中文：他说“你好”。</p><p lang="ko">한국어도 됩니다.</p></main><footer>著作権</footer></body></html>""",
    (
        "# 東京の天気\n",
        "今日は**晴れ**です。漢 (かん)字 (じ)も読めます。",
        "| 曜日 | 最高 |\n| --- | --- |\n| 月曜日 | ２５℃ |",
        "- 傘は[不要](https://example.org/かさ?色=赤)",
        "中文：他说“你好”。",
        "한국어도 됩니다.",
    ),
    ("ホーム", "著作権"),
)

RTL = Page(
    """<!DOCTYPE html><html lang="ar" dir="rtl"><body><nav>القائمة</nav><main><h1>مرحبا بالعالم</h1><p>هذا <b>نص</b> عربي مع <a href="/رابط">رابط</a> و<bdi dir="ltr">C++</bdi>.</p><p lang="fa">می‌خواهم بدانم</p><p lang="he">שלום \u202eעולם\u202c</p>
<table><tr><th>اسم</th><th>قيمة</th></tr><tr><td>أ</td><td>١</td></tr></table></main></body></html>""",
    (
        "# مرحبا بالعالم\n",
        "هذا **نص** عربي مع [رابط](https://example.org/رابط) وC++.",
        "می‌خواهم بدانم",
        "שלום עולם",
        "| اسم | قيمة |\n| --- | --- |\n| أ | ١ |",
    ),
    ("القائمة", "\u202e"),
)

BROKEN = Page(
    """<TITLE>Old page</title><BODY bgcolor=white><H1>Fish & chips<H2>Part &lt;1&gt;</H1><p>One <b>two <i>three</b> four</i> five<p>six<ul><li>a<li>b <a href=x.html>link<li>c</a></ul></div></span>
<table border=1><p>Before the table.<tr><td>k<td>v<tr><td>1<td>2<b></table><p class="a"class='b' title=>After</b> it.<dl><dt>t<dd>d<dt>u<dd>e</dl>
<pre>
 x < y && z
   <b>w</b>
</pre><a href="one.html">one <a href="two.html">two</a><form><p>in a form<input type=submit value=no></form><select><option>no<option>no2</select><p>end <!-- no -- > no --><![CDATA[ no ]]>of it</body></html> after""",
    (
        "# Fish & chips",
        "## Part <1>",
        "One ",
        "two",
        "three",
        "four",
        "five",
        "six",
        "- a\n- b ",
        "x.html",
        "- ",
        "c",
        "| k | v |\n| --- | --- |\n| 1 | 2",
        "After",
        "t",
        "d",
        "u",
        "e",
        "```\n x < y && z\n   w\n```",
        "[one](https://example.org/lib/one.html)",
        "[two](https://example.org/lib/two.html)",
        "in a form",
        "end of it",
        "after",
    ),
    ("no2", "CDATA", "-- >"),
)

HIDDEN = Page(
    """<html><body><main><p>seen one</p><p hidden>SECRET</p><p hidden=until-found>SECRET</p><div style="DISPLAY:none !important">SECRET<p>SECRET</p></div><span style="color:red;visibility: hidden">SECRET</span>
<span aria-hidden="true">SECRET</span><template><p>SECRET</p></template><template shadowrootmode=closed><p>SECRET</p></template><script>document.write("SECRET")</script><style>p::after{content:"SECRET"}</style><!-- SECRET -->
<dialog>SECRET</dialog><svg><text>SECRET</text><foreignObject><p>SECRET</p></foreignObject></svg><object data=x>SECRET</object><video src=v>SECRET</video><iframe srcdoc="SECRET">SECRET</iframe><noframes>SECRET</noframes>
<textarea>SECRET</textarea><input type=hidden value=SECRET><input value=SECRET><datalist><option>SECRET</datalist><select><option>SECRET</select><p style="font-size:0">SECRET</p><img alt="SECRET" hidden src=x><br hidden>
<b style="display:none">SECRET</b><table><tr hidden><td>SECRET<tr><td>cell<td style='display:none'>SECRET<td>other<tr><td>x<td>y</table><dl><dt hidden>SECRET<dd aria-hidden=TRUE>SECRET</dl>
<p>seen two</p><noscript><p>seen without scripts</p></noscript><p style="display:block">seen three</p><p aria-hidden=false>seen four</p><dialog open>seen five</dialog><details><summary>seen six</summary>seen seven</details></main></body></html>""",
    (
        "seen one",
        "cell",
        "seen two",
        "seen without scripts",
        "seen three",
        "seen four",
        "seen five",
        "seen six",
        "seen seven",
    ),
    ("SECRET",),
)

NESTED = Page(
    """<html><body><table width="100%" border=0><tr><td width=150><table><tr><td><a href="/a">Menu A</a></td></tr></table></td><td><font face=Arial><h1>Prices</h1>
<table border=1><tr><th>Item</th><th>Details</th></tr><tr><td>Car</td><td><table><tr><td>wheels</td><td>4</td></tr><tr><td>doors</td><td>5</td></tr></table></td></tr></table>
<p>All <b>net</b>.</p><table border=1><tr><th>Size</th><th>Price</th></tr><tr><td>S</td><td>1</td></tr><tr><td>M</td><td>2</td></tr></table></font></td></tr></table></body></html>""",
    (
        "# Prices\n",
        "Car",
        "wheels | 4 |",
        "doors | 5 |",
        "All **net**.",
        "| Size | Price |\n| --- | --- |\n| S | 1 |\n| M | 2 |",
    ),
    (),
)

PAGES = {
    "sphinx": SPHINX,
    "mdn": MDN,
    "readme": README,
    "news": NEWS,
    "wiki": WIKI,
    "forum": FORUM,
    "answers": ANSWERS,
    "blogs": BLOGS,
    "cjk": CJK,
    "rtl": RTL,
    "broken": BROKEN,
    "hidden": HIDDEN,
    "nested": NESTED,
}


def missing(page: Page, text: str) -> list[str]:
    """Return the passages that are missing in the text and those that should not be there."""
    position, wrong = 0, []
    for passage in page.keeps:
        index = text.find(passage, position)
        wrong += [f"missing {passage!r}"] if index < 0 else []
        position = index + len(passage) if index >= 0 else position
    return wrong + [f"still there {passage!r}" for passage in page.drops if passage in text]
