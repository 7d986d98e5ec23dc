import FCMModel
import NIOCore

/// What a legacy body must hold, derived from the translation table and from nothing that writes bodies.
enum LegacyBodyModel {
    /// The members that a message has, and no others.
    static func body(of message: Message, to target: Target) throws -> VectorJSON {
        var members = [try Self.target(target)]
        func add(_ key: String, _ value: VectorJSON?) {
            if let value { members.append(VectorJSON.Member(key: key, value: value)) }
        }
        add("priority", message.priority.map { .string($0.rawValue) })
        add("time_to_live", try message.timeToLive.map { try .integer($0) })
        add("collapse_key", message.collapseKey.map { .string($0) })
        add("restricted_package_name", message.restrictedPackageName.map { .string($0) })
        add("content_available", message.contentAvailable ? .bool(true) : nil)
        add("mutable_content", message.mutableContent ? .bool(true) : nil)
        add("dry_run", message.dryRun ? .bool(true) : nil)
        add("notification", try message.notification.map { try Self.notification($0) })
        if !message.data.isEmpty {
            add("data", .object(message.data.map { VectorJSON.Member(key: $0.key, value: .string($0.value)) }))
        }
        return .object(members)
    }

    private static func target(_ target: Target) throws -> VectorJSON.Member {
        switch target {
        case .token(let text), .notificationKey(let text): .init(key: "to", value: .string(text))
        case .topic(let name): .init(key: "to", value: .string("/topics/\(name.text)"))
        case .tokens(let tokens): .init(key: "registration_ids", value: .array(tokens.map { .string($0) }))
        case .condition(let condition): .init(key: "condition", value: .string(condition.canonical))
        case .installation, .installations: throw VectorProblem("the legacy protocol has no installation ids")
        }
    }

    private static func notification(_ notification: Notification) throws -> VectorJSON {
        var members: [VectorJSON.Member] = []
        for key in NotificationKey.allCases {
            if let text = notification[key] { members.append(.init(key: key.rawValue, value: .string(text))) }
        }
        if let badge = notification.badge { members.append(.init(key: "badge", value: .string(String(badge)))) }
        for (key, arguments) in [
            ("title_loc_args", notification.titleLocArgs), ("body_loc_args", notification.bodyLocArgs),
        ] {
            guard let arguments else { continue }
            let list = VectorJSON.array(arguments.map { .string($0) }).serialised()
            members.append(.init(key: key, value: .string(String(buffer: list))))
        }
        return .object(members)
    }
}
