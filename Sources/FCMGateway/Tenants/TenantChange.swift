import Foundation
import GatewayService

/// One step from what a gateway has to what a file declares.
struct TenantChange: Sendable {
    /// What is done.
    enum Action: String, Sendable {
        /// Something is made.
        case create
        /// Something is made different.
        case change
        /// Something is removed.
        case delete

        /// How a diff marks it.
        var mark: String {
            switch self {
            case .create: "+"
            case .change: "~"
            case .delete: "-"
            }
        }

        /// How a terminal colours it.
        var tone: Tone {
            switch self {
            case .create: .good
            case .change: .caution
            case .delete: .bad
            }
        }
    }

    /// What it is done to.
    enum Object: String, Sendable {
        /// A tenant's settings.
        case tenant
        /// A tenant's own limits.
        case limits
        /// A credential.
        case credential
        /// An API key.
        case key
    }

    /// One field of the object.
    struct Field: Sendable, Equatable {
        /// The field's name.
        var name: String
        /// What the gateway has, as text; nil for nothing.
        var old: String?
        /// What the file declares, as text; nil for nothing.
        var new: String?
    }

    /// What is done.
    var action: Action
    /// What it is done to.
    var object: Object
    /// The tenant.
    var tenant: String
    /// The credential's kind or the key's name; nil for what a tenant has only one of.
    var name: String?
    /// The fields that differ.
    var fields: [Field]
    /// The call that makes the change.
    var call: Call

    /// A call of the admin API.
    struct Call: Sendable {
        /// The method.
        var method: APIClient.Method
        /// The segments behind `/admin/v1`.
        var path: [String]
        /// The body, which may hold a secret; nil for none.
        var body: Redacted<JSONValue>?
    }

    /// Whether the gateway makes a key by it, which it shows in its answer and never again.
    var makesKey: Bool { self.object == .key && self.call.body?.revealed["key"] == nil }

    /// The change in a few words, as in `key orders of tenant shop`.
    var title: String {
        switch self.object {
        case .tenant: "tenant \(self.tenant)"
        case .limits: "limits of tenant \(self.tenant)"
        case .credential: "\(self.name ?? "") credential of tenant \(self.tenant)"
        case .key: "key \(self.name ?? "") of tenant \(self.tenant)"
        }
    }

    /// The lines of a diff: the title, then a line for each field.
    var lines: StyledText {
        let title = StyledText("\(self.action.mark) \(JSONValue.printable(self.title))", self.action.tone)
        return StyledText(lines: [title] + self.fields.map(Self.line))
    }

    private static func line(_ field: Field) -> StyledText {
        let name = field.name
        return switch (field.old, field.new) {
        case (let old?, let new?):
            StyledText("    ~ \(name): \(JSONValue.printable(old)) → \(JSONValue.printable(new))", .caution)
        case (let old?, nil): StyledText("    - \(name): \(JSONValue.printable(old))", .bad)
        case (nil, let new): StyledText("    + \(name): \(JSONValue.printable(new ?? ""))", .good)
        }
    }

    /// The change for programs.
    var json: [String: JSONValue] {
        var members: [String: JSONValue] = [
            "action": .string(self.action.rawValue), "object": .string(self.object.rawValue),
            "tenant": .string(self.tenant),
            "fields": .array(
                self.fields.map { field in
                    .object([
                        "name": .string(field.name), "old": field.old.map(JSONValue.string) ?? .null,
                        "new": field.new.map(JSONValue.string) ?? .null,
                    ])
                }
            ),
        ]
        members["name"] = self.name.map(JSONValue.string)
        return members
    }
}
