import FCMModel
import Testing

@Suite("Notification")
struct NotificationTests {
    @Test("The keys are those of the protocol")
    func keys() {
        #expect(
            Set(NotificationKey.allCases.map(\.rawValue)) == [
                "title", "body", "image", "subtitle", "sound", "icon", "color", "tag", "click_action",
                "android_channel_id", "title_loc_key", "body_loc_key",
            ]
        )
    }

    @Test("A text can be set, replaced and removed, and others keep their order")
    func texts() {
        var notification = Notification()
        notification[.body] = "b"
        notification[.title] = "t"
        notification[.tag] = "g"
        notification[.body] = "c"
        #expect(notification.texts.map(\.key) == [.body, .title, .tag])
        #expect(notification[.body] == "c")
        notification[.title] = nil
        #expect(notification.texts.map(\.key) == [.body, .tag])
        #expect(notification[.title] == nil)
        notification[.title] = nil
        #expect(notification.texts.count == 2)
    }

    @Test("A notification is empty until any key is set")
    func emptiness() {
        #expect(Notification().isEmpty)
        var text = Notification()
        text[.icon] = "i"
        #expect(!text.isEmpty)
        text[.icon] = nil
        #expect(text.isEmpty)
        var badge = Notification()
        badge.badge = 0
        #expect(!badge.isEmpty)
        var title = Notification()
        title.titleLocArgs = []
        #expect(!title.isEmpty)
        var body = Notification()
        body.bodyLocArgs = ["a"]
        #expect(!body.isEmpty)
    }
}
