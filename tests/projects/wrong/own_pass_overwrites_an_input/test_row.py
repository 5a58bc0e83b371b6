import torch


def replaced(table, index, row):
    return table.index_put((index,), row)


def test_in_place(assert_reinplaced):
    table = torch.zeros(4)
    result = assert_reinplaced(replaced, table, torch.tensor([1]), torch.ones(1))
    assert result.tolist() == [0, 1, 0, 0]
