import GatewayTestKit

/// Writes random bodies that resemble a message; every text except member names contains a canary.
struct RandomJSON {
    let canary: String
    var generator: SeededGenerator

    private static let fields = [
        "token", "tokens", "fid", "fids", "topic", "condition", "device_group", "notification", "data", "priority",
        "ttl", "collapse_key", "content_available", "mutable_content", "restricted_package_name", "dry_run", "to",
    ]
    private static let notificationFields = [
        "title", "body", "image", "subtitle", "sound", "badge", "icon", "color", "tag", "click_action",
        "android_channel_id", "title_loc_key", "title_loc_args", "body_loc_key", "body_loc_args", "nope",
    ]

    /// An object that often is a valid message.
    mutating func message() -> String {
        if Int.random(in: 0..<20, using: &self.generator) == 0 { return self.value(depth: 0) }
        var members: [String: String] = [:]
        if Bool.random(using: &self.generator) {
            members["token"] = self.string(isToken: true)
        }
        for _ in 0..<Int.random(in: 0..<5, using: &self.generator) {
            let field = Self.fields.randomElement(using: &self.generator) ?? ""
            members[field] = self.isSensible() ? self.sensible(field) : self.value(depth: 0)
        }
        return self.object(members)
    }

    private mutating func isSensible() -> Bool {
        Int.random(in: 0..<4, using: &self.generator) > 0
    }

    /// A value of a field's type.
    private mutating func sensible(_ field: String) -> String {
        switch field {
        case "tokens", "fids":
            let texts = (0..<Int.random(in: 1...4, using: &self.generator))
                .map { _ in
                    self.string(isToken: true)
                }
            return "[\(texts.joined(separator: ","))]"
        case "ttl":
            return String(Int.random(in: -1...2_419_201, using: &self.generator))
        case "content_available", "mutable_content", "dry_run":
            return Bool.random(using: &self.generator) ? "true" : "false"
        case "notification":
            var members: [String: String] = [:]
            for _ in 0..<Int.random(in: 0..<4, using: &self.generator) {
                let key = Self.notificationFields.randomElement(using: &self.generator) ?? ""
                members[key] = Bool.random(using: &self.generator) ? self.string() : self.value(depth: 1)
            }
            return self.object(members)
        case "data":
            var members: [String: String] = [:]
            for index in 0..<Int.random(in: 0..<4, using: &self.generator) {
                members["k\(index)"] = self.isSensible() ? self.string() : self.value(depth: 1)
            }
            return self.object(members)
        default:
            return self.string()
        }
    }

    private mutating func value(depth: Int) -> String {
        switch Int.random(in: 0..<(depth < 4 ? 8 : 5), using: &self.generator) {
        case 0: return "null"
        case 1: return Bool.random(using: &self.generator) ? "true" : "false"
        case 2: return String(Int.random(in: -10...10_000_000_000, using: &self.generator))
        case 3: return "\(Double.random(in: -1e6...1e6, using: &self.generator))"
        case 4: return self.string()
        case 5, 6:
            let elements = (0..<Int.random(in: 0..<4, using: &self.generator)).map { _ in self.value(depth: depth + 1) }
            return "[\(elements.joined(separator: ","))]"
        default:
            var members: [String: String] = [:]
            for index in 0..<Int.random(in: 0..<4, using: &self.generator) {
                members["m\(index)"] = self.value(depth: depth + 1)
            }
            return self.object(members)
        }
    }

    /// A text that contains the canary, randomly escaped; a token has no control characters.
    private mutating func string(isToken: Bool = false) -> String {
        let before = ["", "/topics/", "'", "a:b", "é"].randomElement(using: &self.generator) ?? ""
        let after = ["", "' in topics", "-1", "\n", "💥"].randomElement(using: &self.generator) ?? ""
        let escapesAll = Bool.random(using: &self.generator)
        var text = "\""
        for unit in (before + self.canary + after).utf16 where !isToken || unit >= 0x20 {
            if escapesAll || unit < 0x20 || unit == 0x22 || unit == 0x5C || unit > 0x7E {
                let digits = String(unit, radix: 16)
                text += #"\u"# + String(repeating: "0", count: 4 - digits.count) + digits
            } else {
                text.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            }
        }
        return text + "\""
    }

    private mutating func object(_ members: [String: String]) -> String {
        // Sorted, since a dictionary's own order differs from run to run.
        let texts = members.sorted { $0.key < $1.key }.map { #""\#($0.key)":\#($0.value)"# }
        return "{\(texts.shuffled(using: &self.generator).joined(separator: ","))}"
    }
}
