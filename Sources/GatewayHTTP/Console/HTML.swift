import FCMModel
import GatewayCore

/// A piece of HTML, made from string literals.
///
/// A literal is markup. Text that is interpolated into it is escaped, so a name from outside never becomes markup. Other
/// pieces are interpolated as they are. The value of an attribute must stand in double quotation marks.
struct HTML: Sendable, Equatable, ExpressibleByStringInterpolation {
    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) {
            self.text.reserveCapacity(literalCapacity + interpolationCount * 16)
        }

        mutating func appendLiteral(_ literal: String) { self.text += literal }

        mutating func appendInterpolation(_ piece: HTML?) { self.text += piece?.text ?? "" }

        mutating func appendInterpolation(_ pieces: [HTML]) { for piece in pieces { self.text += piece.text } }

        mutating func appendInterpolation(_ number: Int) { self.text += String(number) }

        mutating func appendInterpolation(_ text: String?) {
            for scalar in (text ?? "").unicodeScalars {
                switch scalar {
                case "&": self.text += "&amp;"
                case "<": self.text += "&lt;"
                case ">": self.text += "&gt;"
                case "\"": self.text += "&quot;"
                case "'": self.text += "&#39;"
                // HTML allows no further control characters.
                case "\u{0}"..."\u{8}", "\u{B}", "\u{C}", "\u{E}"..."\u{1F}", "\u{7F}"..."\u{9F}":
                    self.text.unicodeScalars.append("\u{FFFD}")
                default: self.text.unicodeScalars.append(scalar)
                }
            }
        }
    }

    let text: String

    init(stringLiteral literal: String) { self.text = literal }

    init(stringInterpolation: StringInterpolation) { self.text = stringInterpolation.text }
}

// MARK: Common parts

extension HTML {
    /// Text of which at most 80 characters are shown, so that a page stays small.
    static func short(_ text: String?) -> HTML {
        let text = text ?? "–"
        return text.count > 80 ? "\(String(text.prefix(80)))…" : "\(text)"
    }

    /// A table with a row for each entry, or a sentence if there are none. The first cell of a row is its name.
    static func table<Entry>(
        _ caption: String,
        _ columns: [String],
        _ entries: some Sequence<Entry>,
        empty: String,
        cells: (Entry) -> [HTML]
    ) -> HTML {
        let rows = entries.map { entry -> HTML in
            let cells = cells(entry)
            return "<tr><th scope=\"row\">\(cells.first)</th>\(cells.dropFirst().map { "<td>\($0)</td>" })</tr>\n"
        }
        guard !rows.isEmpty else { return "<p>\(empty)</p>" }
        return """
            <div class="wide" role="region" tabindex="0" aria-label="\(caption)"><table><caption>\(caption)</caption>
            <thead><tr>\(columns.map { "<th scope=\"col\">\($0)</th>" })</tr></thead><tbody>\(rows)</tbody></table></div>
            """
    }

    /// Terms and their descriptions.
    static func facts(_ facts: [(String, HTML)]) -> HTML {
        "<dl>\(facts.map { "<div><dt>\($0)</dt><dd>\($1)</dd></div>" })</dl>"
    }

    /// A field of a form with its label.
    static func field(_ label: String, _ name: String, _ value: String?) -> HTML {
        "<label>\(label) <input name=\"\(name)\" value=\"\(value)\" autocomplete=\"off\" spellcheck=\"false\"></label>\n"
    }

    /// A choice among words, with one for any of them.
    static func choice(_ label: String, _ name: String, _ words: [String], _ chosen: String?) -> HTML {
        let options = words.map { word -> HTML in
            "<option\(word == chosen ? " selected" as HTML : nil)>\(word)</option>"
        }
        return "<label>\(label) <select name=\"\(name)\"><option value=\"\">any</option>\(options)</select></label>\n"
    }

    /// A state as a word, with a colour.
    static func state(_ word: String, isGood: Bool) -> HTML {
        "<span class=\"\(isGood ? "good" : "bad")\">\(word)</span>"
    }

    /// A moment in UTC, to the second.
    static func moment(_ time: Timestamp?) -> HTML {
        guard let text = time?.rfc3339 else { return "–" }
        return "<time datetime=\"\(text)\">\(String(text.prefix(10))) \(String(text.dropFirst(11).prefix(8)))</time>"
    }

    /// A link to a tenant's page.
    static func tenant(_ id: String) -> HTML {
        "<a href=\"/console/tenants/\(PercentEncoding.encoded(id))\">\(id)</a>"
    }

    /// A link to the next page of a list, with the same filters; nothing at the end.
    static func next(_ path: String, _ filters: [(String, String?)], cursor: String?) -> HTML? {
        guard let cursor else { return nil }
        let query = (filters + [("cursor", cursor)])
            .compactMap { name, value in
                value.map { "\(name)=\(PercentEncoding.encoded($0))" }
            }
        return "<p><a href=\"\(path)?\(query.joined(separator: "&"))\">Next page</a></p>"
    }

    /// The rest of quotas.
    static func quotas(_ caption: String, _ quotas: [(LimitScope, QuotaStatus)]) -> HTML {
        .table(caption, ["Limit", "Left", "Full again in"], quotas, empty: "The limits can't be read.") {
            scope,
            quota in
            [
                "\(scope.rawValue) \(quota.policy.text)", "\(quota.remaining) of \(quota.policy.burst)",
                "\(quota.resetSeconds) s",
            ]
        }
    }
}
