import FCMModel

/// A stretch of a device's subscriptions, which are in the order of their topics' names.
struct SubscriptionPage {
    /// The stretch.
    let subscriptions: ArraySlice<TopicSubscription>
    /// The topic after which the next page begins; `nil` at the end.
    let last: String?

    init(_ all: [TopicSubscription], after cursor: String?, limit: Int) {
        let rest = cursor.map { cursor in
            all.drop { !cursor.utf8.lexicographicallyPrecedes($0.topic.utf8) }
        }
        let page = (rest ?? all[...]).prefix(limit)
        self.subscriptions = page
        self.last = page.endIndex < all.endIndex ? page.last?.topic : nil
    }
}
