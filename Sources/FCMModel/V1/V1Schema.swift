import StrictJSON

/// The fields of one v1 message type, by both spellings of their names.
struct V1Schema: Sendable {
    indirect enum Kind: Sendable {
        case text
        /// `#` and six hexadecimal digits.
        case color
        /// A label for analytics: 1 to 50 of the characters that topic names may have.
        case label
        case link
        case choice([String], inAnyCase: Bool)
        case duration
        /// A duration of at most four weeks.
        case timeToLive
        case flag
        /// An integer, as a number or as text.
        case count
        case number
        case texts
        case durations
        /// An object whose values are strings.
        case textMap
        /// An object that v1 passes through.
        case structure
        case message(V1Schema)
    }

    struct Field: Sendable {
        /// The name in `snake_case`, as on the protocol page.
        let name: String
        let kind: Kind
        /// The field's index within its type.
        let index: Int
    }

    let count: Int
    private let fields: [String: Field]

    init(_ fields: KeyValuePairs<String, Kind>) {
        var known: [String: Field] = [:]
        for (index, field) in fields.enumerated() {
            let value = Field(name: field.key, kind: field.value, index: index)
            known[field.key] = value
            known[Self.camelCase(field.key)] = value
        }
        self.fields = known
        self.count = fields.count
    }

    subscript(name: String) -> Field? {
        name.protocolWord.flatMap { self.fields[$0] }
    }

    private static func camelCase(_ name: String) -> String {
        let words = name.split(separator: "_")
        let others = words.dropFirst().map { "\($0.prefix(1).uppercased())\($0.dropFirst())" }
        return words.prefix(1).joined() + others.joined()
    }
}

extension V1Schema {
    static let request = V1Schema(["validate_only": .flag, "message": .message(Self.message)])

    /// A message (http-v1, section 3).
    static let message = V1Schema([
        "name": .text,
        "token": .text,
        "fid": .text,
        "topic": .text,
        "condition": .text,
        "data": .textMap,
        "notification": .message(Self.notification),
        "android": .message(Self.android),
        "apns": .message(Self.apns),
        "webpush": .message(Self.webpush),
        "fcm_options": .message(Self.options),
    ])

    static let notification = V1Schema(["title": .text, "body": .text, "image": .text])

    static let android = V1Schema([
        "collapse_key": .text,
        "priority": .choice(["NORMAL", "HIGH"], inAnyCase: true),
        "ttl": .timeToLive,
        "restricted_package_name": .text,
        "data": .textMap,
        "notification": .message(Self.androidNotification),
        "fcm_options": .message(Self.options),
        "direct_boot_ok": .flag,
        "bandwidth_constrained_ok": .flag,
        "restricted_satellite_ok": .flag,
    ])

    static let androidNotification = V1Schema([
        "title": .text,
        "body": .text,
        "icon": .text,
        "color": .color,
        "sound": .text,
        "tag": .text,
        "click_action": .text,
        "body_loc_key": .text,
        "body_loc_args": .texts,
        "title_loc_key": .text,
        "title_loc_args": .texts,
        "channel_id": .text,
        "image": .text,
        "ticker": .text,
        "sticky": .flag,
        "event_time": .text,
        "local_only": .flag,
        "notification_priority": .choice(
            ["PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH", "PRIORITY_MAX"],
            inAnyCase: false
        ),
        "default_sound": .flag,
        "default_vibrate_timings": .flag,
        "default_light_settings": .flag,
        "vibrate_timings": .durations,
        "visibility": .choice(["PRIVATE", "PUBLIC", "SECRET"], inAnyCase: false),
        "notification_count": .count,
        "light_settings": .message(Self.lightSettings),
        "proxy": .choice(["ALLOW", "DENY", "IF_PRIORITY_LOWERED"], inAnyCase: false),
    ])

    static let apns = V1Schema([
        "headers": .textMap,
        "payload": .structure,
        "fcm_options": .message(Self.apnsOptions),
        "live_activity_token": .text,
    ])

    static let webpush = V1Schema([
        "headers": .textMap,
        "data": .textMap,
        "notification": .structure,
        "fcm_options": .message(Self.webpushOptions),
    ])

    private static let lightSettings = V1Schema([
        "color": .message(V1Schema(["red": .number, "green": .number, "blue": .number, "alpha": .number])),
        "light_on_duration": .duration,
        "light_off_duration": .duration,
    ])

    private static let options = V1Schema(["analytics_label": .label])
    private static let apnsOptions = V1Schema(["analytics_label": .label, "image": .text])

    static let webpushOptions = V1Schema(["link": .link, "analytics_label": .label])

    /// Checks a body against v1's fields. Like Google's front end and then FCM, checks all names and types before any
    /// value.
    struct Checker {
        /// The first invalid value.
        private(set) var badValue: Refusal?

        /// Checks an object and all known parts of it. Throws the first unknown name or wrong type. `null` counts as
        /// absent everywhere.
        mutating func check(_ value: JSONValue, _ schema: V1Schema, at path: String) throws(Refusal) {
            guard let members = value.members else { throw .wrongType(path, "an object") }
            var seen = Array(repeating: false, count: schema.count)
            for member in members {
                let name = member.key
                guard let field = schema[name] else { throw .unknown(Refusal.path(path, name)) }
                guard !seen[field.index] else { throw .repeated(Refusal.path(path, field.name)) }
                seen[field.index] = true
                guard !member.value.isNull else { continue }
                try self.check(member.value, field.kind, at: Refusal.path(path, field.name))
            }
        }

        private mutating func check(_ value: JSONValue, _ kind: V1Schema.Kind, at path: String) throws(Refusal) {
            switch kind {
            case .text, .color, .label, .link, .choice, .duration, .timeToLive:
                guard value.kind == .string else { throw .wrongType(path, "TYPE_STRING") }
                self.checkText(value, kind, at: path)
            case .flag:
                guard value.bool != nil else { throw .wrongType(path, "TYPE_BOOL") }
            case .count:
                guard Self.isWhole(value) else { throw .wrongType(path, "TYPE_INT32") }
            case .number:
                guard value.number != nil else { throw .wrongType(path, "TYPE_FLOAT") }
            case .texts, .durations:
                guard let elements = value.elements else { throw .wrongType(path, "a list of TYPE_STRING") }
                for element in elements {
                    guard element.kind == .string else { throw .wrongType(path, "a list of TYPE_STRING") }
                    if case .durations = kind { self.checkText(element, .duration, at: path) }
                }
            case .textMap:
                guard let members = value.members else { throw .wrongType(path, "a map of TYPE_STRING") }
                for member in members where member.value.kind != .string && !member.value.isNull {
                    throw .wrongType(Refusal.path(path, member.key), "TYPE_STRING")
                }
            case .structure:
                guard value.members != nil else { throw .wrongType(path, "an object") }
            case .message(let schema):
                try self.check(value, schema, at: path)
            }
        }

        /// Records an invalid text. The empty text counts as absent.
        private mutating func checkText(_ value: JSONValue, _ kind: V1Schema.Kind, at path: String) {
            if case .text = kind { return }
            guard self.badValue == nil, let text = value.string, !text.isEmpty else { return }
            let demand: String? =
                switch kind {
                case .color: ValueRules.isColor(text) ? nil : "# and six hexadecimal digits"
                case .label: Self.isLabel(text) ? nil : "1 to 50 characters of A-Z a-z 0-9 - _ . ~ %"
                case .link: ValueRules.isHTTPS(text) ? nil : "an address with https"
                case .choice(let words, let inAnyCase):
                    text.protocolWord.map { words.contains(inAnyCase ? $0.uppercased() : $0) } ?? false
                        ? nil : "one of \(words.joined(separator: ", "))"
                case .duration: V1Duration(text) == nil ? "a duration such as 3.5s" : nil
                case .timeToLive:
                    Self.isTimeToLive(text) ? nil : "a duration such as 3600s, at most \(Message.maxTimeToLive)s"
                case .text, .flag, .count, .number, .texts, .durations, .textMap, .structure, .message: nil
                }
            if let demand { self.badValue = .badValue(path, demand) }
        }

        private static func isWhole(_ value: JSONValue) -> Bool {
            let number = value.number ?? value.string.flatMap { JSONNumber(text: $0) }
            return number?.integer.flatMap { Int32(exactly: $0) } != nil
        }

        private static func isLabel(_ text: String) -> Bool {
            text.utf8.count <= 50 && text.utf8.allSatisfy(TopicName.isTopicCharacter)
        }

        private static func isTimeToLive(_ text: String) -> Bool {
            guard let duration = V1Duration(text) else { return false }
            return ValueRules.isTimeToLive(duration.roundedUp)
        }
    }
}
