import StrictJSON

extension V1MessageWriter {
    /// The longest collapse id that APNs takes, in bytes.
    ///
    /// A longer key is left out for Apple: cut, it would merge with others.
    static let maxCollapseIDBytes = 64

    /// Writes `apns`, where anything concerns Apple devices.
    func writeAPNS(to writer: inout JSONWriter) {
        let hasHeaders = self.hasAPNSHeaders
        let hasPayload = self.hasAPS
        guard hasHeaders || hasPayload else { return }
        writer.key("apns")
        writer.beginObject()
        if hasHeaders {
            writer.key("headers")
            writer.beginObject()
            self.writeAPNSHeaders(to: &writer)
            writer.endObject()
        }
        if hasPayload {
            writer.key("payload")
            writer.beginObject()
            writer.key("aps")
            writer.beginObject()
            self.writeAPS(to: &writer)
            writer.endObject()
            writer.endObject()
        }
        writer.endObject()
    }

    // MARK: Headers

    /// Whether the message wakes an app and shows nothing (TR-SILENT).
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
        if let seconds = self.message.timeToLive {
            // The present second would be past on arrival; APNs knows 0 as "try once".
            writer.member("apns-expiration", seconds == 0 ? "0" : String(self.now + seconds))
        }
        if let id = self.collapseID { writer.member("apns-collapse-id", id) }
        if self.isSilent {
            writer.member("apns-priority", "5")
            writer.member("apns-push-type", "background")
        } else if self.notification != nil {
            // FCM refuses 10 without a notification, in words that look like a bad token.
            switch self.message.priority {
            case .normal: writer.member("apns-priority", "5")
            case .high: writer.member("apns-priority", "10")
            case nil: break
            }
        }
    }

    // MARK: Payload

    /// Whether an alert of its own is needed: FCM builds one from the common notification, but knows only title and
    /// body.
    private var hasAlert: Bool {
        guard let notification = self.notification else { return false }
        return notification[.subtitle] != nil || notification[.bodyLocKey] != nil || notification[.titleLocKey] != nil
    }

    private var hasAPS: Bool {
        if self.message.contentAvailable { return true }
        guard let notification = self.notification else { return false }
        return self.message.mutableContent || notification.badge != nil || notification[.sound] != nil
            || notification[.clickAction] != nil || self.hasAlert
    }

    private func writeAPS(to writer: inout JSONWriter) {
        if let notification = self.notification {
            if self.hasAlert {
                writer.key("alert")
                writer.beginObject()
                Self.writeAlert(notification, to: &writer)
                writer.endObject()
            }
            if let badge = notification.badge { writer.member("badge", badge) }
            if let sound = notification[.sound] { writer.member("sound", sound) }
            if let category = notification[.clickAction] { writer.member("category", category) }
        }
        if self.message.contentAvailable { writer.member("content-available", 1) }
        if self.message.mutableContent, self.notification != nil { writer.member("mutable-content", 1) }
    }

    /// An alert object replaces the common texts whole, so it holds them too (TR-ALERT).
    private static func writeAlert(_ notification: Notification, to writer: inout JSONWriter) {
        if let title = notification[.title] { writer.member("title", title) }
        if let subtitle = notification[.subtitle] { writer.member("subtitle", subtitle) }
        if let body = notification[.body] { writer.member("body", body) }
        if let key = notification[.bodyLocKey] { writer.member("loc-key", key) }
        Self.write("loc-args", notification.usefulBodyLocArgs, to: &writer)
        if let key = notification[.titleLocKey] { writer.member("title-loc-key", key) }
        Self.write("title-loc-args", notification.usefulTitleLocArgs, to: &writer)
    }
}
