"""Sphinx's configuration of the manual. Its sources are what scripts/manual has put together."""

project = "fcm-gateway"
author = "the fcm-gateway authors"
root_doc = "index"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["manual"]

html_theme = "alabaster"
html_theme_options = {
    "description": "A push gateway for Firebase Cloud Messaging",
    "fixed_sidebar": True,
    "show_powered_by": False,
    "page_width": "76em",
    "sidebar_width": "17em",
}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
html_static_path = ["manual.css"]
html_favicon = "icon.svg"
html_css_files = ["manual.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
# The same sources make the same bytes.
html_last_updated_fmt = None

myst_heading_anchors = 4
suppress_warnings = ["myst.header"]
highlight_language = "none"
templates_path = ["templates"]
