"""HTML pages as trees, by the standard library's parser; raises on tags that do not close in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    @property
    def classes(self):
        return (self.attributes.get("class") or "").split()

    @property
    def text(self):
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def walk(self):
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def all(self, tag=None, look=None, **attributes):
        """Elements with a tag, a class and attributes (None: the attribute is there at all)."""
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            node
            for node in self.walk()
            if (tag is None or node.tag == tag)
            and (look is None or look in node.classes)
            and all(
                name in node.attributes and (value is None or node.attributes[name] == value)
                for name, value in wanted.items()
            )
        ]

    def one(self, *args, **kwargs):
        (found,) = self.all(*args, **kwargs)
        return found


class _Builder(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = Node("")
        self.open = [self.root]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"<{tag}> has an attribute twice: {names}"
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def parse(html):
    """The tree of a page or a fragment."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    assert len(builder.open) == 1, f"<{builder.open[-1].tag}> is not closed"
    return builder.root
