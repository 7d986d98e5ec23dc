/// The members a legacy JSON request may have, and their types (T1, T2).
enum LegacyFields {
    enum Kind {
        case string
        case boolean
        case number
        case strings
        case object
        /// Any type at all: the member is ignored (L-DWI).
        case ignored
        /// A string of digits or a number (L-BADGE).
        case badge
        /// An array, or a string holding one (L-LOCARGS).
        case list
    }

    /// Top-level members.
    static let message: [String: Kind] = [
        "to": .string,
        "registration_ids": .strings,
        "condition": .string,
        "notification_key": .string,
        "collapse_key": .string,
        "priority": .string,
        "content_available": .boolean,
        "mutable_content": .boolean,
        "delay_while_idle": .ignored,
        "time_to_live": .number,
        "restricted_package_name": .string,
        "dry_run": .boolean,
        "data": .object,
        "notification": .object,
    ]

    /// Members of `notification`, together for all platforms.
    static let notification: [String: Kind] = [
        "title": .string,
        "body": .string,
        "subtitle": .string,
        "sound": .string,
        "badge": .badge,
        "icon": .string,
        "image": .string,
        "android_channel_id": .string,
        "tag": .string,
        "color": .string,
        "click_action": .string,
        "title_loc_key": .string,
        "body_loc_key": .string,
        "title_loc_args": .list,
        "body_loc_args": .list,
    ]

    /// Whether the value may stand for a member of this kind.
    static func accepts(_ value: JSONValue, as kind: Kind) -> Bool {
        switch (kind, value) {
        case (.ignored, _):
            return true
        case (.string, .string), (.boolean, .bool), (.number, .number), (.object, .object):
            return true
        case (.badge, .string), (.badge, .number), (.list, .string), (.list, .array):
            return true
        case (.strings, .array(let entries)):
            return entries.allSatisfy { entry in
                guard case .string = entry else { return false }
                return true
            }
        case (.string, _), (.boolean, _), (.number, _), (.object, _), (.badge, _), (.list, _), (.strings, _):
            return false
        }
    }
}
