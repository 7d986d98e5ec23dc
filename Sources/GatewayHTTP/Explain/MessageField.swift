import FCMModel

/// A field of a message that a caller can leave out.
struct MessageField {
    /// The field in the words of the REST contract (RFC 6901).
    let pointer: String
    private let remove: (inout Message) -> Void

    /// A message without the field.
    func removed(from message: Message) -> Message {
        var message = message
        self.remove(&message)
        if message.notification?.isEmpty == true { message.notification = nil }
        return message
    }

    /// The fields that a message has.
    static func present(in message: Message) -> [MessageField] {
        var fields: [MessageField] = []
        func add(_ pointer: String, if isPresent: Bool, _ remove: @escaping (inout Message) -> Void) {
            if isPresent { fields.append(MessageField(pointer: pointer, remove: remove)) }
        }
        let notification = message.notification
        for text in notification?.texts ?? [] {
            add("/notification/\(text.key.rawValue)", if: true) { $0.notification?[text.key] = nil }
        }
        add("/notification/badge", if: notification?.badge != nil) { $0.notification?.badge = nil }
        add("/notification/title_loc_args", if: notification?.titleLocArgs != nil) {
            $0.notification?.titleLocArgs = nil
        }
        add("/notification/body_loc_args", if: notification?.bodyLocArgs != nil) {
            $0.notification?.bodyLocArgs = nil
        }
        add("/data", if: !message.data.isEmpty) { $0.data = [] }
        add("/priority", if: message.priority != nil) { $0.priority = nil }
        add("/ttl", if: message.timeToLive != nil) { $0.timeToLive = nil }
        add("/collapse_key", if: message.collapseKey != nil) { $0.collapseKey = nil }
        add("/content_available", if: message.contentAvailable) { $0.contentAvailable = false }
        add("/mutable_content", if: message.mutableContent) { $0.mutableContent = false }
        add("/restricted_package_name", if: message.restrictedPackageName != nil) { $0.restrictedPackageName = nil }
        add("/dry_run", if: message.dryRun) { $0.dryRun = false }
        return fields
    }
}
