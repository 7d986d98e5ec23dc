/// The user-visible part of a message: the union of the platforms' predefined keys (T2a, T2b, T2c and `image`).
package struct Notification: Sendable, Hashable {
    /// The texts that are set, by key.
    ///
    /// A notification carries few of the many keys, so a short list beats a field for each.
    package private(set) var texts: [Text] = []
    /// The number on the app's icon, 0 to 2,147,483,647; 0 removes it.
    package var badge: Int?
    /// Values for the placeholders of the localised title.
    package var titleLocArgs: [String]?
    /// Values for the placeholders of the localised body.
    package var bodyLocArgs: [String]?

    /// A notification without any key.
    package init() {}

    /// Whether no key is set.
    package var isEmpty: Bool {
        self.texts.isEmpty && self.badge == nil && self.titleLocArgs == nil && self.bodyLocArgs == nil
    }

    /// The text of a key; setting `nil` removes it.
    package subscript(key: NotificationKey) -> String? {
        get { self.texts.first { $0.key == key }?.value }
        set {
            if let index = self.texts.firstIndex(where: { $0.key == key }) {
                if let newValue { self.texts[index].value = newValue } else { self.texts.remove(at: index) }
            } else if let newValue {
                self.texts.append(Text(key: key, value: newValue))
            }
        }
    }

    /// One text of a notification.
    package struct Text: Sendable, Hashable {
        /// Which key it stands under.
        package let key: NotificationKey
        /// The text; never empty.
        package fileprivate(set) var value: String
    }
}

/// The notification keys that hold a plain text; raw values are the names on the wire of REST and legacy alike.
package enum NotificationKey: String, Sendable, Hashable, CaseIterable {
    case title
    case body
    case image
    case subtitle
    case sound
    case icon
    case color
    case tag
    case clickAction = "click_action"
    case androidChannelID = "android_channel_id"
    case titleLocKey = "title_loc_key"
    case bodyLocKey = "body_loc_key"
}
