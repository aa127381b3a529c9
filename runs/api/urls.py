"""URLs of collections, topics, judgements, runs, teams and tokens."""

from django.urls import path

from runs.api import views

_COLLECTION = "collections/<slug:collection>/"

urlpatterns = [
    path("collections/", views.CollectionList.as_view(), name="collections"),
    path(_COLLECTION, views.CollectionDetail.as_view(), name="collection"),
    path(_COLLECTION + "topics/", views.TopicList.as_view(), name="topics"),
    path(_COLLECTION + "qrels/", views.QrelsList.as_view(), name="qrels-list"),
    path(_COLLECTION + "qrels/<int:version>/", views.QrelsDetail.as_view(), name="qrels"),
    path(_COLLECTION + "qrels/<int:version>/activate/", views.QrelsActivation.as_view(), name="qrels-activate"),
    path(_COLLECTION + "qrels/<int:version>/file/", views.QrelsFile.as_view(), name="qrels-file"),
    path(_COLLECTION + "runs/", views.RunList.as_view(), name="runs"),
    path("runs/<uuid:run>/", views.RunDetail.as_view(), name="run"),
    path("runs/<uuid:run>/file/", views.RunFile.as_view(), name="run-file"),
    path("runs/<uuid:run>/known/", views.RunKnown.as_view(), name="run-known"),
    path("teams/", views.TeamList.as_view(), name="teams"),
    path("tokens/", views.TokenList.as_view(), name="tokens"),
    path("tokens/<slug:key>/", views.TokenDetail.as_view(), name="token"),
]
