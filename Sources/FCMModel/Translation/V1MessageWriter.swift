import StrictJSON

/// Writes a message as v1's members, without its target (TR-* of the translation page).
///
/// Empty objects are never written. Each part first checks whether it has any content.
struct V1MessageWriter {
    /// The maximum size of a collapse id of APNs, in bytes.
    ///
    /// A longer key is left out for Apple, because a truncated key could equal another key.
    static let maxCollapseIDBytes = 64

    private let message: Message
    private let notification: Notification?
    private let now: Int

    init(_ message: Message, now: Int) {
        self.message = message
        // Arguments without their key are left out (TR-LOC), so arguments alone are not a notification.
        self.notification = message.notification.flatMap { $0.texts.isEmpty && $0.badge == nil ? nil : $0 }
        self.now = now
    }

    func writeMembers(to writer: inout JSONWriter) {
        writer.data(of: self.message)
        self.writeCommonNotification(to: &writer)
        self.writeAndroid(to: &writer)
        self.writeAPNS(to: &writer)
        self.writeWebpush(to: &writer)
    }

    /// Writes the keys that all platforms share. The other keys are written for each platform in its own form.
    private func writeCommonNotification(to writer: inout JSONWriter) {
        let title = self.notification?[.title]
        let body = self.notification?[.body]
        let image = self.notification?[.image]
        guard title != nil || body != nil || image != nil else { return }
        writer.beginObject("notification")
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
        writer.beginObject("android")
        if let key = message.collapseKey { writer.member("collapse_key", key) }
        switch message.priority {
        case .normal: writer.member("priority", "NORMAL")
        case .high: writer.member("priority", "HIGH")
        case nil: break
        }
        if let seconds = message.timeToLive {
            writer.key("ttl")
            writer.string(seconds, unit: "s")
        }
        if let package = message.restrictedPackageName { writer.member("restricted_package_name", package) }
        if hasNotification, let notification = self.notification {
            writer.beginObject("notification")
            for text in notification.texts {
                guard let key = Self.androidKey(for: text.key) else { continue }
                writer.member(key, text.value)
            }
            if let texts = notification.arguments(of: .titleLocKey) { writer.member("title_loc_args", texts) }
            if let texts = notification.arguments(of: .bodyLocKey) { writer.member("body_loc_args", texts) }
            writer.endObject()
        }
        writer.endObject()
    }

    /// Returns a key's name under `android.notification`. Returns `nil` for keys that belong elsewhere.
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

    // MARK: Apple

    private func writeAPNS(to writer: inout JSONWriter) {
        let hasHeaders = self.hasAPNSHeaders
        let hasPayload = self.hasAPS
        guard hasHeaders || hasPayload else { return }
        writer.beginObject("apns")
        if hasHeaders { self.writeAPNSHeaders(to: &writer) }
        if hasPayload { self.writePayload(to: &writer) }
        writer.endObject()
    }

    /// True if the message wakes an app and shows nothing (TR-SILENT).
    private var isSilent: Bool {
        self.message.contentAvailable && self.notification == nil
    }

    private var collapseID: String? {
        self.message.collapseKey.flatMap { $0.utf8.count <= Self.maxCollapseIDBytes ? $0 : nil }
    }

    private var hasAPNSHeaders: Bool {
        self.message.timeToLive != nil || self.isSilent || self.collapseID != nil
            || (self.message.priority != nil && self.notification != nil)
    }

    private func writeAPNSHeaders(to writer: inout JSONWriter) {
        writer.beginObject("headers")
        if let seconds = self.message.timeToLive {
            // For a time to live of 0, the current second would have passed on arrival. APNs reads 0 as "try once".
            writer.key("apns-expiration")
            writer.string(seconds == 0 ? 0 : self.now + seconds)
        }
        if let id = self.collapseID { writer.member("apns-collapse-id", id) }
        if self.isSilent {
            writer.member("apns-priority", "5")
            writer.member("apns-push-type", "background")
        } else if self.notification != nil {
            // FCM refuses priority 10 without a notification, with an error that looks like a bad token.
            switch self.message.priority {
            case .normal: writer.member("apns-priority", "5")
            case .high: writer.member("apns-priority", "10")
            case nil: break
            }
        }
        writer.endObject()
    }

    /// True if the message needs an alert object. FCM builds an alert from the common notification, but only from title
    /// and body.
    private var hasAlert: Bool {
        guard let notification = self.notification else { return false }
        return notification.has(.subtitle) || notification.has(.bodyLocKey) || notification.has(.titleLocKey)
    }

    private var hasAPS: Bool {
        if self.message.contentAvailable { return true }
        guard let notification = self.notification else { return false }
        return self.message.mutableContent || notification.badge != nil || notification.has(.sound)
            || notification.has(.clickAction) || self.hasAlert
    }

    private func writePayload(to writer: inout JSONWriter) {
        writer.beginObject("payload")
        writer.beginObject("aps")
        if let notification = self.notification {
            if self.hasAlert { Self.writeAlert(notification, to: &writer) }
            if let badge = notification.badge { writer.member("badge", badge) }
            if let sound = notification[.sound] { writer.member("sound", sound) }
            if let category = notification[.clickAction] { writer.member("category", category) }
        }
        if self.message.contentAvailable { writer.member("content-available", 1) }
        if self.message.mutableContent, self.notification != nil { writer.member("mutable-content", 1) }
        writer.endObject()
        writer.endObject()
    }

    /// An alert object replaces all common texts, so it repeats them (TR-ALERT).
    private static func writeAlert(_ notification: Notification, to writer: inout JSONWriter) {
        writer.beginObject("alert")
        if let title = notification[.title] { writer.member("title", title) }
        if let subtitle = notification[.subtitle] { writer.member("subtitle", subtitle) }
        if let body = notification[.body] { writer.member("body", body) }
        if let key = notification[.bodyLocKey] { writer.member("loc-key", key) }
        if let texts = notification.arguments(of: .bodyLocKey) { writer.member("loc-args", texts) }
        if let key = notification[.titleLocKey] { writer.member("title-loc-key", key) }
        if let texts = notification.arguments(of: .titleLocKey) { writer.member("title-loc-args", texts) }
        writer.endObject()
    }

    // MARK: Web

    private func writeWebpush(to writer: inout JSONWriter) {
        let message = self.message
        // Browsers accept only https addresses. Other texts here are for another platform.
        let icon = self.notification?[.icon].flatMap { ValueRules.isHTTPS($0) ? $0 : nil }
        let link = self.notification?[.clickAction].flatMap { ValueRules.isHTTPS($0) ? $0 : nil }
        let hasHeaders = message.timeToLive != nil || message.priority != nil
        guard hasHeaders || icon != nil || link != nil else { return }
        writer.beginObject("webpush")
        if hasHeaders {
            writer.beginObject("headers")
            if let seconds = message.timeToLive {
                writer.key("TTL")
                writer.string(seconds)
            }
            if let priority = message.priority { writer.member("Urgency", priority.rawValue) }
            writer.endObject()
        }
        if let icon {
            writer.beginObject("notification")
            writer.member("icon", icon)
            writer.endObject()
        }
        if let link {
            writer.beginObject("fcm_options")
            writer.member("link", link)
            writer.endObject()
        }
        writer.endObject()
    }
}

extension Notification {
    /// The arguments of a localised text. `nil` if there are no arguments, or if their key is missing (TR-LOC).
    fileprivate func arguments(of key: NotificationKey) -> [String]? {
        let arguments = key == .titleLocKey ? self.titleLocArgs : self.bodyLocArgs
        guard let arguments, !arguments.isEmpty, self.has(key) else { return nil }
        return arguments
    }
}
