import StrictJSON

/// Writes what a message becomes in v1, its target apart (TR-* of the translation page).
///
/// Empty objects are never written: each part asks first whether anything goes into it.
struct V1MessageWriter {
    let message: Message
    /// `nil` where no known key is set.
    let notification: Notification?
    let now: Int

    init(_ message: Message, now: Int) {
        self.message = message
        self.notification = message.notification.flatMap { $0.isEmpty ? nil : $0 }
        self.now = now
    }

    /// Writes the members into an object that is open.
    func writeMembers(to writer: inout JSONWriter) {
        self.writeData(to: &writer)
        self.writeCommonNotification(to: &writer)
        self.writeAndroid(to: &writer)
        self.writeAPNS(to: &writer)
        self.writeWebpush(to: &writer)
    }

    private func writeData(to writer: inout JSONWriter) {
        guard !self.message.data.isEmpty else { return }
        writer.key("data")
        writer.beginObject()
        for entry in self.message.data {
            writer.key(entry.key)
            writer.string(entry.value)
        }
        writer.endObject()
    }

    /// The keys that all platforms share; what else a notification has, each platform gets in its own words.
    private func writeCommonNotification(to writer: inout JSONWriter) {
        let title = self.notification?[.title]
        let body = self.notification?[.body]
        let image = self.notification?[.image]
        guard title != nil || body != nil || image != nil else { return }
        writer.key("notification")
        writer.beginObject()
        if let title { writer.member("title", title) }
        if let body { writer.member("body", body) }
        if let image { writer.member("image", image) }
        writer.endObject()
    }

    // MARK: Android

    private func writeAndroid(to writer: inout JSONWriter) {
        let message = self.message
        let hasNotification = self.notification?.texts.contains { Self.androidKey(for: $0.key) != nil } ?? false
        guard
            hasNotification || message.collapseKey != nil || message.priority != nil || message.timeToLive != nil
                || message.restrictedPackageName != nil
        else { return }
        writer.key("android")
        writer.beginObject()
        if let key = message.collapseKey { writer.member("collapse_key", key) }
        switch message.priority {
        case .normal: writer.member("priority", "NORMAL")
        case .high: writer.member("priority", "HIGH")
        case nil: break
        }
        if let seconds = message.timeToLive { writer.member("ttl", String(seconds) + "s") }
        if let package = message.restrictedPackageName { writer.member("restricted_package_name", package) }
        if hasNotification, let notification = self.notification {
            writer.key("notification")
            writer.beginObject()
            for text in notification.texts {
                guard let key = Self.androidKey(for: text.key) else { continue }
                writer.member(key, text.value)
            }
            Self.write("title_loc_args", notification.usefulTitleLocArgs, to: &writer)
            Self.write("body_loc_args", notification.usefulBodyLocArgs, to: &writer)
            writer.endObject()
        }
        writer.endObject()
    }

    /// A key's name under `android.notification`; `nil` for those that stand elsewhere.
    private static func androidKey(for key: NotificationKey) -> StaticString? {
        switch key {
        case .sound: "sound"
        case .icon: "icon"
        case .color: "color"
        case .tag: "tag"
        case .clickAction: "click_action"
        case .androidChannelID: "channel_id"
        case .titleLocKey: "title_loc_key"
        case .bodyLocKey: "body_loc_key"
        case .title, .body, .image, .subtitle: nil
        }
    }

    // MARK: Web

    private func writeWebpush(to writer: inout JSONWriter) {
        let message = self.message
        // Browsers take addresses with https only; what else stands here is meant for another platform.
        let icon = self.notification?[.icon].flatMap { ValueRules.isHTTPS($0) ? $0 : nil }
        let link = self.notification?[.clickAction].flatMap { ValueRules.isHTTPS($0) ? $0 : nil }
        let hasHeaders = message.timeToLive != nil || message.priority != nil
        guard hasHeaders || icon != nil || link != nil else { return }
        writer.key("webpush")
        writer.beginObject()
        if hasHeaders {
            writer.key("headers")
            writer.beginObject()
            if let seconds = message.timeToLive { writer.member("TTL", String(seconds)) }
            if let priority = message.priority { writer.member("Urgency", priority.rawValue) }
            writer.endObject()
        }
        if let icon { Self.write("notification", "icon", icon, to: &writer) }
        if let link { Self.write("fcm_options", "link", link, to: &writer) }
        writer.endObject()
    }

    // MARK: Pieces

    /// Writes a list of texts; nothing if there is none.
    static func write(_ key: StaticString, _ texts: [String]?, to writer: inout JSONWriter) {
        guard let texts else { return }
        writer.key(key)
        writer.beginArray()
        for text in texts { writer.string(text) }
        writer.endArray()
    }

    /// Writes an object of one text.
    private static func write(
        _ key: StaticString,
        _ inner: StaticString,
        _ text: String,
        to writer: inout JSONWriter
    ) {
        writer.key(key)
        writer.beginObject()
        writer.member(inner, text)
        writer.endObject()
    }
}

extension Notification {
    /// The arguments of the title; `nil` without any, or without the key that they belong to (TR-LOC).
    var usefulTitleLocArgs: [String]? {
        guard let arguments = self.titleLocArgs, !arguments.isEmpty, self[.titleLocKey] != nil else { return nil }
        return arguments
    }

    /// The arguments of the body; `nil` without any, or without the key that they belong to (TR-LOC).
    var usefulBodyLocArgs: [String]? {
        guard let arguments = self.bodyLocArgs, !arguments.isEmpty, self[.bodyLocKey] != nil else { return nil }
        return arguments
    }
}
